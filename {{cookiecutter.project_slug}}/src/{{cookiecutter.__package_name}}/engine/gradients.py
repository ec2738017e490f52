"""One training step done right on any number of devices: loss, gradients, reduction, clipping, update.

The order matters. Keras's ``clipnorm`` clips what one replica computed, before the sum over replicas, so that
two devices train another model than one. Here gradients are reduced first, in one collective together
with the loss, and everything after sees the same values on every replica: a NaN on one of them, too.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from absl import logging

from ..vocab import per_variable, vocab
from . import random
from .batches import cut
from .options import OptimizerOptions
from .trainable import multipliers

Loss = Callable[..., tf.Tensor]


def minimize(
    loss: Loss,
    x: Any,
    y: Any,
    *,
    network: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    options: OptimizerOptions,
    seed: int,
) -> dict[str, tf.Tensor]:
    """Takes one training step on this replica's part of the global batch.

    Args:
        loss: called as ``loss(x, y, training=True)``; returns a loss for each example, ``[batch] float32``.
        x: this replica's inputs, a tensor or a structure of tensors ``[batch, ...]``; every replica holds as
            many, a multiple of ``options.accumulate_steps``, in the order of ``batches.training``.
        y: their targets, likewise, or None when the loss needs none.
        network: holds the variables; its regularisation losses are added once, not once for each replica.
        optimizer: made by ``optimizers.build`` for the network's trainable variables.
        options: what is done to the gradients.
        seed: the run's seed, for the layers that draw random numbers.

    Returns:
        Values of the whole global batch, float32, equal on every replica: ``loss`` before the update,
        ``gradient_norm`` before clipping, ``learning_rate`` of this step; with ``options.report_gradients``
        each variable's gradient before clipping, ``gradient/<path>``.
    """
    replica = tf.distribute.get_replica_context()
    total, gradients = _sum_of_micro_batches(
        loss, x, y, network, optimizer.iterations.value, options.accumulate_steps, seed
    )
    variables = [
        v for v, g in zip(network.trainable_variables, gradients, strict=True) if g is not None
    ]
    _warn_of_others(network.trainable_variables, variables)
    # Rows of an embedding come as slices that may name a row twice; norms and clipping need their sums.
    gradients = [tf.convert_to_tensor(g) for g in gradients if g is not None]
    if replica.num_replicas_in_sync > 1:
        *gradients, total = replica.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, total])
    factors = multipliers(options.gradient_multipliers, [v.path for v in variables])
    gradients = [g if f == 1 else f * g for g, f in zip(gradients, factors, strict=True)]
    norm = tf.linalg.global_norm(gradients)
    learning_rate = tf.identity(optimizer.learning_rate, name=vocab.learning_rate)
    optimizer.apply(_clipped(gradients, norm, options), variables)
    reported = {vocab.loss: total, vocab.gradient_norm: norm, vocab.learning_rate: learning_rate}
    if options.report_gradients:
        for variable, gradient in zip(variables, gradients, strict=True):
            reported[per_variable(vocab.gradient, variable.path)] = gradient
    return reported


def _sum_of_micro_batches(
    loss: Loss,
    x: Any,
    y: Any,
    network: keras.Model,
    step: tf.Variable,
    parts: int,
    seed: int,
) -> tuple[tf.Tensor, list[Any]]:
    """Returns this replica's share of the mean loss and of its gradients, computed part by part.

    Micro-batch i of all replicas together holds the i-th run of positions in the global batch. The parts
    are unrolled: synchronised batch normalisation cannot run in a graph loop.
    """
    replica = tf.distribute.get_replica_context()
    replicas = replica.num_replicas_in_sync
    number = tf.cast(replica.replica_id_in_sync_group, tf.int32)
    examples = tf.shape(tf.nest.flatten(x)[0])[0] // parts
    share = 1 / tf.cast(examples * parts * replicas, tf.float32)
    variables = [v.value for v in network.trainable_variables]
    total = tf.constant(0.0)
    gradients: list[Any] = [None] * len(variables)
    for i, (some_x, some_y) in enumerate(cut((x, y), parts)):
        first = (i * replicas + number) * examples
        with tf.GradientTape() as tape, random.draws(seed, step, first):
            part = tf.reduce_sum(loss(some_x, some_y, training=True)) * share
            if network.losses:
                part += tf.add_n(network.losses) / (parts * replicas)
        found = tape.gradient(part, variables)
        gradients = [_add(g, f) for g, f in zip(gradients, found, strict=True)]
        total += part
    return total, gradients


def _add(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return tf.convert_to_tensor(first) + tf.convert_to_tensor(second)


def _clipped(
    gradients: list[tf.Tensor], norm: tf.Tensor, options: OptimizerOptions
) -> list[tf.Tensor]:
    """Returns the gradients clipped by their global norm, then each by its own norm, then by value."""
    if options.clip_norm:
        gradients, _ = tf.clip_by_global_norm(gradients, options.clip_norm, use_norm=norm)
    if options.clip_variable_norm:
        gradients = [tf.clip_by_norm(g, options.clip_variable_norm) for g in gradients]
    if options.clip_value:
        gradients = [
            tf.clip_by_value(g, -options.clip_value, options.clip_value) for g in gradients
        ]
    return gradients


def _warn_of_others(trained: list[keras.Variable], reached: list[keras.Variable]) -> None:
    """Names the variables that the loss does not depend on; this runs once, when the step is traced."""
    paths = {v.path for v in reached}
    others = [v.path for v in trained if v.path not in paths]
    if others:
        logging.warning("the loss does not depend on %s: not trained", ", ".join(others))
