"""Optimizers by name, with a learning rate that is a function of the step.

The rate is always a schedule and never a variable: a variable would be part of a checkpoint, and a resumed
run would go on with the old rate whatever ``--learning_rate`` says.
"""

import math
from typing import Any

import keras
import tensorflow as tf

from .options import OptimizerOptions


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from zero, then constant or half a cosine down to zero at the end of training.

    Warm-up: Goyal et al., "Accurate, large minibatch SGD", 2017. Cosine: Loshchilov and Hutter, "SGDR", 2017.
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
        if options.schedule == "constant":
            return peak * warmed
        length = max(1, options.train_steps - options.warmup_steps)
        done = tf.clip_by_value((step - options.warmup_steps) / length, 0.0, 1.0)
        return peak * warmed * 0.5 * (1 + tf.cos(math.pi * done))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"options": self.options}


def build(options: OptimizerOptions, variables: list[keras.Variable]) -> keras.optimizers.Optimizer:
    """Returns the optimizer of ``options``, its state made for ``variables``.

    It expects gradients that are already summed over replicas: see ``gradients.minimize``.

    Args:
        options: update rule, learning rate and schedule.
        variables: what will be trained. They belong to the current distribution strategy.
    """
    rate = Schedule(options)
    makers = {
        "sgd": lambda: keras.optimizers.SGD(rate),
        "momentum": lambda: keras.optimizers.SGD(rate, momentum=options.momentum, name="momentum"),
        "adam": lambda: keras.optimizers.Adam(rate),
        "adamw": lambda: keras.optimizers.AdamW(rate),
    }
    optimizer = makers[options.name]()
    optimizer.build(variables)
    # Keras would reduce once more. There is no public switch yet (keras-team/keras#19308); the tests that
    # count the reductions and compare replicas fail if the hook is renamed.
    optimizer._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars
    return optimizer
