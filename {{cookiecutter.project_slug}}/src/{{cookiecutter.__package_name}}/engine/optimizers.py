"""Optimizers by name, with a learning rate that is a function of the step.

The rate is always a schedule and never a variable: a variable would be part of a checkpoint, and a resumed
run would go on with the old rate whatever ``--learning_rate`` says.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from .options import OptimizerOptions
from .trainable import multipliers

_MAKERS: dict[str, Callable[..., keras.optimizers.Optimizer]] = {
    "sgd": keras.optimizers.SGD,
    "momentum": keras.optimizers.SGD,
    "nesterov": keras.optimizers.SGD,
    "rmsprop": keras.optimizers.RMSprop,
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "lion": keras.optimizers.Lion,
}
_EXPONENTIAL_END = 0.01  # share of the peak that the exponential schedule ends at
_DROPS = (
    0.5,
    0.75,
)  # of the training after the warm-up: where the piecewise schedule divides by ten


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from zero, then constant or falling until the end of training.

    Warm-up: Goyal et al., "Accurate, large minibatch SGD", 2017. Cosine: Loshchilov and Hutter, "SGDR", 2017,
    half a period down to zero. Exponential: down to a hundredth. Piecewise: a tenth after half and again
    after three quarters of training, as He et al., "Deep residual learning", 2015.
    """

    def __init__(self, options: OptimizerOptions) -> None:
        """Makes the schedule that ``options`` describes."""
        super().__init__()
        self.options = options

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns the learning rate of the step that follows ``step`` finished ones, scalar float32."""
        options = self.options
        step = tf.cast(step, tf.float32)
        peak = tf.constant(options.learning_rate, tf.float32)
        warmed = tf.minimum(1.0, (step + 1) / (options.warmup_steps + 1))
        length = max(1, options.train_steps - options.warmup_steps)
        done = tf.clip_by_value((step - options.warmup_steps) / length, 0.0, 1.0)
        return peak * warmed * self._share(done)

    def _share(self, done: tf.Tensor) -> Any:
        """Returns the share of the peak when ``done`` (0 to 1) of the training after the warm-up is done."""
        match self.options.schedule:
            case "cosine":
                return 0.5 * (1 + tf.cos(math.pi * done))
            case "exponential":
                return _EXPONENTIAL_END**done
            case "piecewise":
                return 0.1 ** tf.add_n([tf.cast(done >= drop, tf.float32) for drop in _DROPS])
            case _:
                return 1.0

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"options": self.options}


def build(options: OptimizerOptions, variables: list[keras.Variable]) -> keras.optimizers.Optimizer:
    """Returns the optimizer of ``options``, its state made for ``variables``.

    It expects gradients that are already summed over replicas: see ``gradients.minimize``. Weight decay is
    decoupled from the gradient (Loshchilov and Hutter, 2019) and leaves out biases, and scales and offsets
    of normalisations: variables with fewer than two dimensions.

    Args:
        options: update rule, learning rate and schedule.
        variables: what will be trained. They belong to the current distribution strategy.

    Raises:
        UserError: a pattern of the multipliers matches none of ``variables``.
    """
    multipliers(options.gradient_multipliers, [v.path for v in variables])
    arguments: dict[str, Any] = {"weight_decay": options.weight_decay}
    if options.ema_momentum:
        arguments |= {"use_ema": True, "ema_momentum": options.ema_momentum}
    if options.name in ("momentum", "nesterov"):
        arguments |= {"momentum": options.momentum, "nesterov": options.name == "nesterov"}
    optimizer = _MAKERS[options.name](Schedule(options), name=options.name, **arguments)
    optimizer.exclude_from_weight_decay([v for v in variables if len(v.shape) < 2])
    optimizer.build(variables)
    # Keras would reduce once more. There is no public switch yet (keras-team/keras#19308); the tests that
    # count the reductions and compare replicas fail if the hook is renamed.
    optimizer._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars
    return optimizer


def averages(optimizer: keras.optimizers.Optimizer) -> list[tuple[keras.Variable, keras.Variable]]:
    """Returns each trained variable with its moving average; none if the optimizer keeps no averages.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992.
    """
    if not optimizer.use_ema:
        return []
    kept = optimizer._model_variables_moving_average  # Keras offers no public way to read them
    return list(zip(optimizer._trainable_variables, kept, strict=True))


@contextlib.contextmanager
def averaged(optimizer: keras.optimizers.Optimizer) -> Iterator[None]:
    """Within it, the trained variables have the values of their moving averages, if there are any."""
    pairs = [(v.value, average.value) for v, average in averages(optimizer)]
    before = [tf.identity(variable) for variable, _ in pairs]
    for variable, average in pairs:
        variable.assign(tf.identity(average))
    try:
        yield
    finally:
        for (variable, _), value in zip(pairs, before, strict=True):
            variable.assign(value)
