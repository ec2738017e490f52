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

_LARGEST_SHIFT = 0.1  # of the image's height and width


def augment(batch: Batch, seed: int, step: tf.Tensor, first: tf.Tensor) -> Batch:
    """Shifts each image by its own whole number of pixels; what moves in at an edge repeats the edge.

    Args:
        batch: ``x`` is ``[batch, height, width, channels] uint8``.
        seed: the run's seed.
        step: global step, scalar int64.
        first: position in the global batch of the first example, scalar int64.
    """
    x = batch[vocab.x]
    height, width = x.shape[1:3]
    drawn = random.uniform(seed, "augment", step, first, [tf.shape(x)[0], 2])
    rows = _shifted(height, drawn[:, 0])
    columns = _shifted(width, drawn[:, 1])
    x = tf.gather(x, rows, axis=1, batch_dims=1)
    return {**batch, vocab.x: tf.gather(x, columns, axis=2, batch_dims=1)}


def _shifted(size: int, drawn: tf.Tensor) -> tf.Tensor:
    """Returns where each pixel along an axis comes from, ``[batch, size] int32``."""
    largest = max(1, round(_LARGEST_SHIFT * size))
    shifts = tf.cast(tf.floor(drawn * (2 * largest + 1)), tf.int32) - largest
    return tf.clip_by_value(tf.range(size) + shifts[:, tf.newaxis], 0, size - 1)
