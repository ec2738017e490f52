"""Trains a part of the network: the rest keeps its values, moving statistics included."""

import re

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
        paths = ", ".join(v.path for v in network.trainable_variables)
        raise UserError(f"--trainable={pattern} matches no variable; the model has {paths}")
    for layer in network.layers:
        own = {v.path for v in layer.trainable_variables}
        if own and not own & trained:
            layer.trainable = False
        elif own - trained:
            for variable in layer.trainable_variables:
                variable.trainable = variable.path in trained
