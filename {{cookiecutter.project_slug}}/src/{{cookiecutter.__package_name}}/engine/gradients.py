"""One training step done right on any number of devices: loss, gradients, reduction, clipping, update.

The order matters. Keras's ``clipnorm`` clips what one replica computed, before the sum over replicas, so that
two devices train another model than one. Here gradients are reduced first, in one collective together
with the loss, and everything after sees the same values on every replica.
"""

from collections.abc import Callable

import keras
import tensorflow as tf

from ..vocab import vocab
from . import random

Loss = Callable[..., tf.Tensor]


def minimize(
    loss: Loss,
    x: tf.Tensor,
    y: tf.Tensor | None,
    *,
    network: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    seed: int,
    clip_norm: float = 0.0,
) -> dict[str, tf.Tensor]:
    """Takes one training step on this replica's part of the global batch.

    Args:
        loss: called as ``loss(x, y, training=True)``; returns a loss for each example, ``[batch] float32``.
        x: this replica's inputs, ``[batch, ...]``; every replica holds as many.
        y: their targets, ``[batch, ...]``, or None when the loss needs none.
        network: holds the variables; its regularisation losses are added once, not once for each replica.
        optimizer: made by ``optimizers.build`` for the network's trainable variables.
        seed: the run's seed, for the layers that draw random numbers.
        clip_norm: global norm that the reduced gradients are scaled down to; 0 leaves them as they are.

    Returns:
        Scalars of the whole global batch, float32, equal on every replica: ``loss`` before the update,
        ``gradient_norm`` before clipping, ``learning_rate`` of this step.
    """
    replica = tf.distribute.get_replica_context()
    replicas = replica.num_replicas_in_sync
    batch = tf.shape(x)[0]
    step = optimizer.iterations.value
    variables = [v.value for v in network.trainable_variables]
    first = tf.cast(replica.replica_id_in_sync_group, tf.int32) * batch
    with tf.GradientTape() as tape, random.draws(seed, step, first):
        total = tf.reduce_sum(loss(x, y, training=True)) / tf.cast(batch * replicas, tf.float32)
        if network.losses:
            total += tf.add_n(network.losses) / replicas
    gradients = tape.gradient(total, variables)
    if replicas > 1:
        *gradients, total = replica.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, total])
    norm = tf.linalg.global_norm(gradients)
    if clip_norm:
        gradients, _ = tf.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    learning_rate = tf.identity(optimizer.learning_rate, name=vocab.learning_rate)
    optimizer.apply(gradients, network.trainable_variables)
    return {vocab.loss: total, vocab.gradient_norm: norm, vocab.learning_rate: learning_rate}
