"""Which variables are trained, and which more slowly: patterns for the paths of variables."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import keras

from ..vocab import per_variable, vocab
from .errors import UserError
from .run import variables as of_model

_SHOWN = 5


def set_trainable(networks: Mapping[str, keras.Layer] | keras.Layer, pattern: str) -> None:
    """Leaves only the variables trainable whose whole path matches ``pattern``.

    A layer with variables of which none is trained is not trainable: its batch normalisation runs in inference mode, so
    that the moving statistics stay as they are. It has to come before the optimizer is made.

    Args:
        networks: changed in place; paths are those of ``variables_by_path``.
        pattern: regular expression, such as ``head/.*``; empty trains all.

    Raises:
        UserError: no variable matches.
    """
    if not pattern:
        return
    paths = {k: v for k, v in variables_by_path(networks).items() if v.trainable}
    trained = {id(v) for k, v in paths.items() if re.fullmatch(pattern, k)}
    if not trained:
        raise UserError(f"--trainable={pattern} matches no variable; {known(pattern, paths)}")
    for network in _by_name(networks).values():
        _freeze_others(network, trained)


freeze_others = set_trainable  # its name in the last release; goes with the next


def multipliers(entries: Sequence[tuple[str, float]], paths: Sequence[str]) -> list[float]:
    """Returns the multiplier of each variable: 1 where no pattern matches.

    Args:
        entries: (regular expression for the whole path, multiplier); of several that match, the last counts.
        paths: of the trained variables.
    """
    return [
        next((value for pattern, value in reversed(entries) if re.fullmatch(pattern, path)), 1.0)
        for path in paths
    ]


def refuse_unmatched(flag: str, entries: Sequence[tuple[str, float]], paths: Sequence[str]) -> None:
    """Raises UserError, which names ``flag``, if one of its patterns matches no path."""
    for pattern, _ in entries:
        if not any(re.fullmatch(pattern, path) for path in paths):
            raise UserError(
                f"{flag}: {pattern} matches no trained variable; {known(pattern, paths)}"
            )


def variables_by_path(
    networks: Mapping[str, keras.Layer] | keras.Layer,
) -> dict[str, keras.Variable]:
    """Returns all weights by the path that patterns and tags name them by.

    It is ``conv_1/kernel`` for a single network and for one called ``inference``, else ``<network>/conv_1/kernel``.
    """
    return {
        of_model.path(per_variable(name, v.path)): v
        for name, network in _by_name(networks).items()
        for v in network.weights
    }


def layers_by_path(
    networks: Mapping[str, keras.Layer] | keras.Layer,
) -> Iterator[tuple[str, keras.Layer]]:
    """Yields all layers, also those inside others, with their parents' names and their own: ``backbone/conv_1``."""

    def inside(layer: keras.Layer, prefix: str) -> Iterator[tuple[str, keras.Layer]]:
        for child in sublayers(layer):
            yield prefix + child.name, child
            yield from inside(child, f"{prefix}{child.name}/")

    for name, network in _by_name(networks).items():
        yield from inside(network, of_model.path(per_variable(name, "")))


def sublayers(layer: keras.Layer) -> Iterator[keras.Layer]:
    """Yields the layers directly in a layer; Keras has this in public for models only."""
    yield from layer._flatten_layers(include_self=False, recursive=False)


def known(name: str, names: Collection[str]) -> str:
    """Says for an error message which names are nearest to ``name``, and which there are."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3)
    return (f"nearest: {', '.join(near)}; " if near else "") + f"there are {some(names)}"


def some(names: Collection[str]) -> str:
    """Lists names in a message: the first five and how many there are."""
    first = ", ".join(sorted(names)[:_SHOWN])
    return f"{first}, ... ({len(names)} in all)" if len(names) > _SHOWN else first or "none"


def _by_name(networks: Mapping[str, keras.Layer] | keras.Layer) -> Mapping[str, keras.Layer]:
    return networks if isinstance(networks, Mapping) else {vocab.inference: networks}


def _freeze_others(layer: keras.Layer, trained: set[int]) -> None:
    own = {id(v): v for v in layer.trainable_variables}
    if own and not own.keys() & trained:
        layer.trainable = False
    elif own.keys() - trained:
        for child in sublayers(layer):
            for v in child.trainable_variables:
                own.pop(id(v), None)
            _freeze_others(child, trained)
        for key, variable in own.items():  # those that are in no layer inside this one
            variable.trainable = key in trained
