"""Optimizers by name, with a learning rate that is a function of the step.

The rate is always a schedule and never a variable: a variable would be part of a checkpoint, and a resumed
run would go on with the old rate whatever ``--learning_rate`` says.
"""

import math
from typing import Any

import keras
import tensorflow as tf

from .errors import UserError
from .options import OPTIMIZERS, OptimizerOptions

_REFUSED = {
    "clipnorm": "clips what one replica computed; use --clip_variable_norm, which clips the sum over replicas",
    "global_clipnorm": "clips what one replica computed; use --clip_norm, which clips the sum over replicas",
    "clipvalue": "clips what one replica computed; use --clip_value, which clips the sum over replicas",
    "loss_scale_factor": "is taken out of gradients whose loss was not scaled; use --precision=bfloat16",
    "gradient_accumulation_steps": "fails on several replicas; use --accumulate_steps",
    "ema_overwrite_frequency": "fails on several replicas; evaluation uses the averages without it",
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


class _Constant(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of an optimizer that was given a number."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def __call__(self, step: Any) -> tf.Tensor:
        return tf.constant(self.rate, tf.float32)

    def get_config(self) -> dict[str, Any]:
        return {"rate": self.rate}


def build(options: OptimizerOptions, variables: list[keras.Variable]) -> keras.optimizers.Optimizer:
    """Returns the optimizer of ``options``, its state made for ``variables``.

    Weight decay is decoupled from the gradient (Loshchilov and Hutter, 2019) and leaves out biases, and scales and
    offsets of normalisations: variables with fewer than two dimensions.

    Args:
        options: update rule, learning rate and schedule.
        variables: what will be trained. They belong to the current distribution strategy.
    """
    arguments: dict[str, Any] = {"weight_decay": options.weight_decay}
    if options.ema_momentum:
        arguments |= {"use_ema": True, "ema_momentum": options.ema_momentum}
    if options.name in ("momentum", "nesterov"):
        arguments |= {"momentum": options.momentum, "nesterov": options.name == "nesterov"}
    make = getattr(keras.optimizers, OPTIMIZERS[options.name])
    optimizer = make(Schedule(options), name=options.name, **arguments)
    optimizer.exclude_from_weight_decay([v for v in variables if len(v.shape) < 2])
    return prepare(optimizer, variables)


def prepare(
    optimizer: keras.optimizers.Optimizer, variables: list[keras.Variable]
) -> keras.optimizers.Optimizer:
    """Returns any optimizer of Keras, its state made for ``variables``, right on any number of devices.

    Args:
        optimizer: see ``adopt``.
        variables: what it will train. They belong to the current distribution strategy.
    """
    adopt(optimizer)
    optimizer.build(variables)
    return optimizer


def adopt(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer expect gradients that are summed over replicas already: see ``gradients.minimize``.

    A learning rate that is a number becomes a schedule: as a variable it would be part of the checkpoint.

    Raises:
        UserError: it does what is wrong on several replicas, or what a flag does.
    """
    for attribute, instead in _REFUSED.items():
        if getattr(optimizer, attribute, None):
            raise UserError(f"optimizer {optimizer.name!r}: {attribute} {instead}")
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise UserError(
            f"optimizer {optimizer.name!r}: a scaled loss is checked on the first replica only; use "
            "--precision=bfloat16, which needs none"
        )
    if isinstance(getattr(optimizer, "_learning_rate", None), keras.Variable):
        optimizer.learning_rate = _Constant(float(optimizer.learning_rate.numpy()))
    # Keras would reduce once more. There is no public switch yet (keras-team/keras#19308); the tests that
    # count the reductions and compare replicas fail if the hook is renamed.
    optimizer._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars


def apply(
    optimizer: keras.optimizers.Optimizer,
    gradients: list[tf.Tensor],
    variables: list[keras.Variable],
    factors: list[float],
) -> None:
    """Takes the optimizer's step, in a replica's context; each variable moves ``factors`` times as far.

    What is scaled is the whole update, weight decay included, which is right for every optimizer. Moving averages
    follow the scaled variables.
    """
    scaled = [(v, factor) for v, factor in zip(variables, factors, strict=True) if factor != 1]
    before = [tf.identity(v.value) for v, _ in scaled]
    ids = {id(v) for v, _ in scaled}
    kept = [(v, average) for v, average in averages(optimizer) if id(v) in ids]
    averages_before = [tf.identity(average.value) for _, average in kept]
    momentum = tf.where(
        optimizer.iterations.value > 0, getattr(optimizer, "ema_momentum", 0.0), 0.0
    )
    optimizer.apply(gradients, variables)
    if not scaled:
        return

    def scale(strategy: tf.distribute.Strategy, olds: list[tf.Tensor]) -> None:
        for (variable, factor), old in zip(scaled, olds, strict=True):
            strategy.extended.update(
                variable.value,
                lambda v, old, factor=factor: v.assign(old + factor * (v - old)),
                args=(old,),
                group=False,
            )

    interim = tf.__internal__.distribute.interim
    interim.maybe_merge_call(scale, tf.distribute.get_strategy(), before)
    for variable, _ in scaled:
        if variable.constraint is not None:  # the optimizer's step ended with it
            variable.assign(variable.constraint(variable))
    for (variable, average), old in zip(kept, averages_before, strict=True):
        average.assign(momentum * old + (1 - momentum) * variable.value)


def averages(optimizer: keras.optimizers.Optimizer) -> list[tuple[keras.Variable, keras.Variable]]:
    """Returns each trained variable with its moving average; none if the optimizer keeps no averages.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992.
    """
    if not optimizer.use_ema:
        return []
    kept = optimizer._model_variables_moving_average  # Keras offers no public way to read them
    return list(zip(optimizer._trainable_variables, kept, strict=True))
