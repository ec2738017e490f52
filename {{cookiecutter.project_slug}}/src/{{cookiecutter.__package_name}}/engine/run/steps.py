"""The two compiled functions: many training steps in one call, and the totals of one evaluation batch.

Each is traced once. The number of steps is a tensor, since a Python number would trace anew for every value;
an evaluation batch always has the same shape, since the last one is filled up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from ...vocab import per_variable, vocab
from .protocols import Model

REPORTED = (vocab.loss, vocab.gradient_norm, vocab.learning_rate)
"""What the model tells of a step."""
PER_STEP = (*REPORTED, vocab.input_wait)
"""What is known of every step."""


def make_train(
    model: Model, strategy: tf.distribute.Strategy, iterator: Any
) -> Callable[[int], tuple[tf.Tensor, dict[str, tf.Tensor]]]:
    """Returns ``train(steps)``: takes so many steps in a graph loop, on the next batches of ``iterator``.

    The batch after the last is taken as well, for the step that follows. It returns the ``PER_STEP`` figures of
    every step, ``[steps, 4] float32``, and what else the last step reported, by name: with
    ``OptimizerOptions.report_gradients`` the gradients.
    """
    upcoming = None  # the batch of the next step

    def replica_step(batch: dict[str, tf.Tensor]) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        reported = model.optimize(batch[vocab.x], batch.get(vocab.y))
        row = tf.stack([reported.pop(name) for name in REPORTED])
        return row, reported

    @tf.function(input_signature=[iterator.element_spec, tf.TensorSpec([], tf.int32)])
    def take(batch: Any, steps: tf.Tensor) -> tuple[Any, tf.Tensor, dict[str, tf.Tensor]]:
        rows = tf.TensorArray(tf.float32, size=steps, element_shape=[len(PER_STEP)])
        last = {}
        if model.options.report_gradients:
            for variable in model.network.trainable_variables:
                last[per_variable(vocab.gradient, variable.path)] = tf.zeros(variable.shape)
        for i in tf.range(steps):
            following = next(iterator)  # while the step is computed
            with tf.name_scope(vocab.optimize):
                row, others = strategy.run(replica_step, args=(batch,))
            first = strategy.experimental_local_results
            waited = _seconds_between(first(row), following)
            rows = rows.write(i, tf.concat([first(row)[0], [waited]], axis=0))
            last = {**last, **{name: first(value)[0] for name, value in others.items()}}
            batch = following
        return batch, rows.stack(), last

    def train(steps: int) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        nonlocal upcoming
        batch = next(iterator) if upcoming is None else upcoming
        upcoming, rows, last = take(batch, tf.constant(steps))
        return rows, last

    return train


def _seconds_between(one: Any, other: Any) -> tf.Tensor:
    """Returns how long after ``one`` there is ``other``, about 0 if it is there before, scalar float32."""
    with tf.control_dependencies(tf.nest.flatten(one, expand_composites=True)):
        began = tf.timestamp()
    with tf.control_dependencies([began, *tf.nest.flatten(other, expand_composites=True)]):
        return tf.cast(tf.timestamp() - began, tf.float32)


def make_evaluate(
    model: Model, strategy: tf.distribute.Strategy
) -> Callable[[Any], dict[str, Any]]:
    """Returns ``evaluate(batches)``: the model's figures over all batches of a split.

    Sums and counts are added up, over replicas and batches, and divided at the end: a mean of means would
    be wrong for a last batch that is not full.
    """

    def replica_totals(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        totals = model.totals(batch[vocab.x], batch.get(vocab.y), batch[vocab.weight])
        replica = tf.distribute.get_replica_context()
        if replica.num_replicas_in_sync > 1:
            totals = replica.all_reduce(tf.distribute.ReduceOp.SUM, totals)
        return totals

    @tf.function
    def batch_totals(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        totals = strategy.run(replica_totals, args=(batch,))
        return {n: strategy.experimental_local_results(t)[0] for n, t in totals.items()}

    def evaluate(batches: Any) -> dict[str, Any]:
        totals: dict[str, Any] = {}
        for batch in batches:
            for name, total in batch_totals(batch).items():
                totals[name] = totals.get(name, 0) + total.numpy().astype(np.float64)
        return model.figures(totals)

    return evaluate
