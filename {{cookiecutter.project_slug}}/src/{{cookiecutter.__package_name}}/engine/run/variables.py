"""The variables of a model by their keys: the names that they have in checkpoints, exports and event files.

A model with one network and one optimizer has ``network`` and ``optimizer``; one with several names them in
``networks`` and ``optimizers``, and those names are the first parts of its keys: ``generator/dense/kernel``.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from ...vocab import per_variable, vocab
from .. import optimizers
from ..errors import UserError

_NETWORK = per_variable(vocab.inference, "")


def networks_of(model: Any) -> dict[str, keras.Layer]:
    """Returns the networks of a model by name; a single one is ``inference``."""
    several = getattr(model, "networks", None)
    return {vocab.inference: model.network} if several is None else dict(several)


def optimizers_of(model: Any) -> dict[str, keras.optimizers.Optimizer]:
    """Returns the optimizers of a model by name, made right for replicas; a single one is ``optimizer``."""
    several = getattr(model, "optimizers", None)
    found = {vocab.optimizer: model.optimizer} if several is None else dict(several)
    for optimizer in found.values():
        optimizers.adopt(optimizer)
    return found


def global_step_of(model: Any) -> tf.Variable:
    """Returns the number of training steps taken: the iterations of the model's first optimizer."""
    several = getattr(model, "optimizers", None)
    first = model.optimizer if several is None else next(iter(several.values()))
    return first.iterations.value


def network_variables(model: Any) -> dict[str, keras.Variable]:
    """Returns the variables of all networks by key: ``inference/conv_1/kernel``."""
    return {
        per_variable(name, v.path): v
        for name, network in networks_of(model).items()
        for v in network.variables
    }


def path(key: str) -> str:
    """Returns how patterns and tags name a variable of a network: its key, without ``inference/``."""
    return key.removeprefix(_NETWORK)


def average_key(key: str) -> str:
    """Returns the key of the moving average of a network's variable."""
    return per_variable(vocab.average, path(key))


def variables_of(model: Any, *, optimizer: bool = True) -> dict[str, tf.Variable]:
    """Returns the variables of a model by key: its networks', its step and its optimizers'.

    Raises:
        UserError: two variables have the same key.
    """
    named = [
        (per_variable(name, v.path), v)
        for name, network in networks_of(model).items()
        for v in network.variables
    ]
    keys = {id(v): key for key, v in named}
    found = optimizers_of(model)
    step = next(iter(found.values())).iterations
    named.append((vocab.global_step, step))
    for name, own in found.items() if optimizer else ():
        averages = {id(average): keys[id(v)] for v, average in optimizers.averages(own)}
        named += [
            (average_key(averages[id(v)]) if id(v) in averages else _slot_key(name, v.path), v)
            for v in own.variables
            if v is not step
        ]
    for key, times in Counter(key for key, _ in named).items():
        if times > 1:
            raise UserError(f"two variables are called {key}: give their layers different names")
    return {key: v.value for key, v in named}


def _slot_key(name: str, path: str) -> str:
    """Returns the key of an optimizer's variable; ``adam_1`` is what Keras calls the second Adam of a process."""
    return per_variable(name, re.sub(r"^(\w+?)_\d+(?=/|$)", r"\1", path))


@contextmanager
def averaged(model: Any) -> Iterator[None]:
    """Within it, the trained variables have the values of their moving averages, if there are any."""
    pairs = [
        (v.value, average.value)
        for optimizer in optimizers_of(model).values()
        for v, average in optimizers.averages(optimizer)
    ]
    before = [tf.identity(variable) for variable, _ in pairs]
    for variable, average in pairs:
        variable.assign(tf.identity(average))
    try:
        yield
    finally:
        for (variable, _), value in zip(pairs, before, strict=True):
            variable.assign(value)
