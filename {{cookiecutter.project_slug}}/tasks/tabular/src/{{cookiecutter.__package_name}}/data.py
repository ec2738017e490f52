"""Where examples come from, and what is done to them on their way to the model. Yours to edit.

Shuffling and sharing among devices are the engine's (``engine/batches.py``). Here stands what is particular to the
data: how a data set is opened, how its examples are read, and how training examples are varied. Draw random
numbers with ``random.uniform`` only: they depend on the seed, the step and the example's position in the global
batch, and so stay the same on any number of devices and after any stop.
"""

__all__ = ["augment", "open_dataset", "open_split"]

import tensorflow as tf

from .engine import random
from .engine.dataset import load as open_dataset
from .engine.examples import Batch, open_split
from .vocab import vocab

_HIDDEN_SHARE = 0.1


def augment(batch: Batch, seed: int, step: tf.Tensor, first: tf.Tensor) -> Batch:
    """Hides each value with the same probability, as if it were missing: not a number, or an empty text.

    Args:
        batch: ``x`` has for each column ``[batch]``, float32 or string.
        seed: the run's seed.
        step: global step, scalar int64.
        first: position in the global batch of the first example, scalar int64.
    """
    x = batch[vocab.x]
    examples = tf.shape(tf.nest.flatten(x)[0])[0]
    drawn = random.uniform(seed, "augment", step, first, [examples, len(x)])
    hidden = {
        name: tf.where(drawn[:, i] < _HIDDEN_SHARE, _missing(values.dtype), values)
        for i, (name, values) in enumerate(sorted(x.items()))
    }
    return {**batch, vocab.x: hidden}


def _missing(dtype: tf.DType) -> tf.Tensor:
    return tf.constant("") if dtype == tf.string else tf.constant(float("nan"), dtype)
