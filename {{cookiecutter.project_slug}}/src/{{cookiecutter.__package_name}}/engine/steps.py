"""The two compiled functions: many training steps in one call, and the totals of one evaluation batch.

Each is traced once. The number of steps is a tensor, since a Python number would trace anew for every value;
an evaluation batch always has the same shape, since the last one is filled up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from ..vocab import vocab

REPORTED = (vocab.loss, vocab.gradient_norm, vocab.learning_rate)


def make_train(model: Any, strategy: tf.distribute.Strategy) -> Callable[..., tf.Tensor]:
    """Returns ``train(iterator, steps)``: takes ``steps`` (scalar int32) steps in a graph loop.

    It returns the ``REPORTED`` figures of every step, ``[steps, 3] float32``.
    """

    def replica_step(batch: dict[str, tf.Tensor]) -> tf.Tensor:
        reported = model.optimize(batch[vocab.x], batch.get(vocab.y))
        return tf.stack([reported[name] for name in REPORTED])

    @tf.function
    def train(iterator: Any, steps: tf.Tensor) -> tf.Tensor:
        rows = tf.TensorArray(tf.float32, size=steps, element_shape=[len(REPORTED)])
        for i in tf.range(steps):
            with tf.name_scope(vocab.optimize):
                row = strategy.run(replica_step, args=(next(iterator),))
            rows = rows.write(i, strategy.experimental_local_results(row)[0])
        return rows.stack()

    return train


def make_evaluate(model: Any, strategy: tf.distribute.Strategy) -> Callable[[Any], dict[str, Any]]:
    """Returns ``evaluate(batches)``: the model's figures over all batches of a split.

    Sums and counts are added up, over replicas and batches, and divided at the end: a mean of means would
    be wrong for a last batch that is not full.
    """

    def replica_totals(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return model.totals(batch[vocab.x], batch.get(vocab.y), batch[vocab.weight])

    @tf.function
    def batch_totals(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return strategy.reduce(
            tf.distribute.ReduceOp.SUM, strategy.run(replica_totals, args=(batch,)), axis=None
        )

    def evaluate(batches: Any) -> dict[str, Any]:
        totals: dict[str, Any] = {}
        for batch in batches:
            for name, total in batch_totals(batch).items():
                totals[name] = totals.get(name, 0) + total.numpy().astype(np.float64)
        return model.figures(totals)

    return evaluate
