"""The compiled function of evaluation: the sums of a model's metrics over one batch, traced once.

A batch always has the same shape, since the last one is filled up with examples of weight 0.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...vocab import vocab
from .. import summaries
from ..errors import UserError
from ..metrics import Metric
from .protocols import Model, check_features, is_old

Outputs = Callable[..., Any]


def make_evaluate(
    model: Model, strategy: tf.distribute.Strategy
) -> Callable[[Any], dict[str, Any]]:
    """Returns ``evaluate(batches)``: the model's metrics over the batches of a split.

    Args:
        model: its ``outputs`` gets the features of a batch by name.
        strategy: in whose scope the model was made.

    Raises:
        UserError: two metrics report a value of the same name, or none reports ``loss`` or ``error``; ``evaluate``
            raises it.
    """
    outputs, metrics = _outputs_and_metrics(model)
    spec: Any = None
    compiled: Any = None

    def replica_sums(batch: dict[str, Any]) -> list[dict[str, tf.Tensor]]:
        features = {name: value for name, value in batch.items() if name != vocab.weight}
        with summaries.receiving():  # which nothing reads
            computed = outputs(**features)
        sums: Any = [metric.sums(computed, batch[vocab.weight]) for metric in metrics]
        sums = tf.nest.map_structure(lambda total: tf.cast(total, tf.float64), sums)
        replica = tf.distribute.get_replica_context()
        if replica.num_replicas_in_sync > 1:  # all of them in one collective
            sums = replica.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        return sums

    def batch_sums(batch: Any) -> list[dict[str, tf.Tensor]]:
        sums = strategy.run(replica_sums, args=(batch,))
        return tf.nest.map_structure(lambda t: strategy.experimental_local_results(t)[0], sums)

    def evaluate(batches: Any) -> dict[str, Any]:
        nonlocal spec, compiled
        if spec != batches.element_spec:
            spec = batches.element_spec
            if not is_old(model):
                check_features(outputs, spec.keys() - {vocab.weight})
            compiled = tf.function(batch_sums).get_concrete_function(spec)
        totals: Any = None
        for batch in batches:
            sums = tf.nest.map_structure(np.asarray, compiled(batch))
            totals = sums if totals is None else tf.nest.map_structure(np.add, totals, sums)
        results: dict[str, Any] = {}
        for metric, sums in zip(metrics, totals, strict=True):
            found = metric.results(sums)
            if twice := sorted(found.keys() & results.keys()):
                raise UserError(f"two of the model's metrics report {', '.join(twice)}")
            results |= {k: v.item() if isinstance(v, np.generic) else v for k, v in found.items()}
        for name in (vocab.loss, vocab.error):
            if name not in results:
                raise UserError(
                    f"the model's metrics report no {name!r}, by which training is judged"
                )
        return results

    return evaluate


def _outputs_and_metrics(model: Any) -> tuple[Outputs, Sequence[Metric]]:
    """Returns a model's own, or, of a model of the last release, its ``totals`` and ``figures`` as a metric."""
    if not is_old(model):
        return model.outputs, model.metrics

    def sums(batch: Any, weight: tf.Tensor) -> dict[str, tf.Tensor]:
        return model.totals(batch[vocab.x], batch.get(vocab.y), weight)

    return dict, [Metric(sums, model.figures)]
