"""tmp"""

import numpy as np
import tensorflow as tf

from ...vocab import vocab


def make_evaluate(model, strategy):
    def replica_totals(batch):
        totals = model.totals(batch[vocab.x], batch.get(vocab.y), batch[vocab.weight])
        replica = tf.distribute.get_replica_context()
        if replica.num_replicas_in_sync > 1:
            totals = replica.all_reduce(tf.distribute.ReduceOp.SUM, totals)
        return totals

    @tf.function
    def batch_totals(batch):
        totals = strategy.run(replica_totals, args=(batch,))
        return {n: strategy.experimental_local_results(t)[0] for n, t in totals.items()}

    def evaluate(batches):
        totals = {}
        for batch in batches:
            for name, total in batch_totals(batch).items():
                totals[name] = totals.get(name, 0) + total.numpy().astype(np.float64)
        return model.figures(totals)

    return evaluate
