"""One training step done right on any number of devices: loss, gradients, reduction, clipping, update.

The order matters. Keras's ``clipnorm`` clips what one replica computed, before the sum over replicas, so that
two devices train another model than one. Here gradients are reduced first, in one collective together
with the loss, and everything after sees the same values on every replica: a NaN on one of them, too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from absl import logging

from ..vocab import per_variable, vocab
from . import optimizers, random
from .data.structures import cut
from .errors import UserError
from .options import OptimizerOptions
from .run import variables as of_model
from .trainable import multipliers

Loss = Callable[..., tf.Tensor]
Transform = Callable[[list[tf.Tensor], list[keras.Variable]], list[tf.Tensor]]
"""From the gradients of the whole batch, and their variables, to other gradients."""


def minimize(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    loss: Loss | None = None,
    network: keras.Layer | None = None,
    optimizer: keras.optimizers.Optimizer | None = None,
    options: OptimizerOptions | None = None,
    seed: int | None = None,
    step: tf.Tensor | None = None,
    transforms: Sequence[Transform] = (),
    **others: Any,
) -> dict[str, tf.Tensor]:
    """Takes one training step on this replica's part of the global batch.

    A model with one network, one optimizer and one loss needs no more than ``minimize(self, x, y)``.

    Args:
        model: has ``loss``, ``network``, ``optimizer``, ``options`` and ``seed``, which are used where they are not
            given here.
        x: this replica's inputs, a tensor or a structure of tensors ``[batch, ...]``; every replica holds as
            many, a multiple of ``options.accumulate_steps``, in the order of ``batches.training``.
        y: their targets, likewise, or None when the loss needs none.
        loss: called as ``loss(x, y, training=True)``; returns a loss for each example, ``[batch] float32``.
        network: what to train; its regularisation losses are added once, not once for each replica.
        optimizer: made by ``optimizers.build`` or ``optimizers.prepare`` for the network's trainable variables.
        options: what is done to the gradients.
        seed: the run's seed, for what draws random numbers.
        step: the global step. Where one step of training minimises several losses, read it before the first.
        transforms: what else is done to the gradients, after their multipliers and before clipping.
        others: further features ``[batch, ...]`` that ``loss`` takes by name.

    Returns:
        Values of the whole global batch, float32, equal on every replica: ``loss`` before the update,
        ``gradient_norm`` before clipping, ``learning_rate`` of this step; with ``options.report_gradients``
        each variable's gradient before clipping, ``gradient/<path>``.

    Raises:
        UserError: the optimizer has no variables yet, or the loss depends on nothing that is trained.
    """
    if loss is None and not hasattr(
        model, vocab.loss
    ):  # minimize(loss, x, ...), for one more release
        loss, model = model, None
    loss = loss or model.loss
    networks = [network] if network is not None else list(of_model.networks_of(model).values())
    if optimizer is None:
        optimizer = next(iter(of_model.optimizers_of(model).values()))
    if not optimizer.built:
        raise UserError(
            f"optimizer {optimizer.name!r} has no variables yet: make it with "
            "optimizers.prepare(optimizer, network.trainable_variables) in the model's __init__"
        )
    optimizers.adopt(optimizer)
    options = options or model.options
    if step is None:
        step = (optimizer.iterations.value if model is None else of_model.global_step_of(model)) + 0
    replica = tf.distribute.get_replica_context()
    total, trained, gradients = _sum_of_micro_batches(
        loss, (x, y, others), networks, step, options, model.seed if seed is None else seed
    )
    paths = _paths(model, trained)
    reached = [i for i, gradient in enumerate(gradients) if gradient is not None]
    if missing := [paths[i] for i in range(len(paths)) if i not in set(reached)]:
        logging.warning("the loss does not depend on %s: not trained", ", ".join(missing))
    if not reached:
        raise UserError("the loss depends on no trained variable: use the model's networks in it")
    variables, paths = [trained[i] for i in reached], [paths[i] for i in reached]
    # Rows of an embedding come as slices that may name a row twice; norms and clipping need their sums.
    gradients = [tf.convert_to_tensor(gradients[i]) for i in reached]
    if replica.num_replicas_in_sync > 1:
        *gradients, total = replica.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, total])
    factors = multipliers(options.gradient_multipliers, paths)
    gradients = [g if f == 1 else f * g for g, f in zip(gradients, factors, strict=True)]
    for transform in transforms:
        gradients = transform(gradients, variables)
    norm = tf.linalg.global_norm(gradients)
    learning_rate = tf.identity(optimizer.learning_rate, name=vocab.learning_rate)
    speeds = multipliers(options.learning_rate_multipliers, paths)
    optimizers.apply(optimizer, _clipped(gradients, norm, options), variables, speeds)
    reported = {vocab.loss: total, vocab.gradient_norm: norm, vocab.learning_rate: learning_rate}
    if options.report_gradients:
        reported |= {
            per_variable(vocab.gradient, p): g for p, g in zip(paths, gradients, strict=True)
        }
    return reported


def _sum_of_micro_batches(
    loss: Loss,
    batch: tuple[Any, Any, dict[str, Any]],
    networks: Sequence[keras.Layer],
    step: tf.Tensor,
    options: OptimizerOptions,
    seed: int,
) -> tuple[tf.Tensor, list[keras.Variable], list[Any]]:
    """Returns this replica's share of the mean loss, the trained variables and their gradients.

    Micro-batch i of all replicas together holds the i-th run of positions in the global batch. The parts
    are unrolled: synchronised batch normalisation cannot run in a graph loop.
    """
    replica = tf.distribute.get_replica_context()
    replicas = replica.num_replicas_in_sync
    index = tf.cast(replica.replica_id_in_sync_group, tf.int32)
    parts = options.accumulate_steps
    examples = tf.shape(tf.nest.flatten(batch[0])[0])[0] // parts
    share = 1 / tf.cast(examples * parts * replicas, tf.float32)
    trained = list({id(v): v for network in networks for v in network.trainable_variables}.values())
    total = tf.constant(0.0)
    gradients: list[Any] = [None] * len(trained)
    for i, (x, y, others) in enumerate(cut(batch, parts)):
        first = (i * replicas + index) * examples
        with tf.GradientTape() as tape, random.draws(seed, step, first):
            part = tf.reduce_sum(loss(x, y, training=True, **others)) * share
            penalties = [penalty for network in networks for penalty in network.losses]
            if penalties:
                part += tf.add_n(penalties) / (parts * replicas)
        found = tape.gradient(part, [v.value for v in trained])
        gradients = [_add(g, f) for g, f in zip(gradients, found, strict=True)]
        total += part
    return total, trained, gradients


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


def _paths(model: Any, variables: Sequence[keras.Variable]) -> list[str]:
    """Returns how patterns and tags name variables."""
    if model is None:
        return [v.path for v in variables]
    keys = {id(v): key for key, v in of_model.network_variables(model).items()}
    return [of_model.path(keys[id(v)]) if id(v) in keys else v.path for v in variables]
