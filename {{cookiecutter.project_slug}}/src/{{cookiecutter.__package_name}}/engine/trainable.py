"""Trains a part of the network, or some variables more slowly: the rest keeps its values and statistics."""

import re
from collections.abc import Iterator, Sequence

import keras

from .errors import UserError


def freeze_others(network: keras.Model, pattern: str) -> None:
    """Leaves only the variables trainable whose whole path matches ``pattern``.

    A layer with variables of which none is trained runs in inference mode, so that the moving statistics of a
    frozen batch normalisation stay as they are. It has to come before the optimizer is made.

    Args:
        network: changed in place.
        pattern: regular expression, such as ``head/.*``; empty trains all.

    Raises:
        UserError: no variable matches.
    """
    if not pattern:
        return
    trained = {v.path for v in network.trainable_variables if re.fullmatch(pattern, v.path)}
    if not trained:
        raise UserError(
            f"--trainable={pattern} matches no variable; {_listed(_paths(network.trainable_variables))}"
        )
    for layer in _layers(network):
        own = {v.path for v in layer.trainable_variables}
        if own and not own & trained:
            layer.trainable = False
        elif own - trained:
            for variable in layer.trainable_variables:
                variable.trainable = variable.path in trained


def multipliers(entries: Sequence[tuple[str, float]], paths: Sequence[str]) -> list[float]:
    """Returns what the gradient of each variable is multiplied with: 1 where no pattern matches.

    Args:
        entries: (regular expression for the whole path, multiplier); of several that match, the last counts.
        paths: of the trained variables.

    Raises:
        UserError: a pattern matches no variable.
    """
    for pattern, _ in entries:
        if not any(re.fullmatch(pattern, path) for path in paths):
            raise UserError(
                f"--gradient_multipliers: {pattern} matches no trained variable; {_listed(paths)}"
            )
    return [
        next((value for pattern, value in reversed(entries) if re.fullmatch(pattern, path)), 1.0)
        for path in paths
    ]


def _layers(network: keras.Model) -> Iterator[keras.Layer]:
    """Yields the layers of a network and of the networks in it."""
    for layer in network.layers:
        if isinstance(layer, keras.Model):
            yield from _layers(layer)
        else:
            yield layer


def _paths(variables: Sequence[keras.Variable]) -> list[str]:
    return [v.path for v in variables]


def _listed(paths: Sequence[str]) -> str:
    return f"the model has {', '.join(paths)}"
