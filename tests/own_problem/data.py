"""What is done to the examples on their way to the model: noise is added to each series."""

import tensorflow as tf

from .engine import random
from .engine.dataset import load as open_dataset
from .engine.examples import Batch, open_split
from .vocab import vocab

__all__ = ["augment", "open_dataset", "open_split"]

_LARGEST_NOISE = 0.02


def augment(batch: Batch, seed: int, step: tf.Tensor, first: tf.Tensor) -> Batch:
    """Adds noise to ``x``, ``[batch, steps, 1] float32``, drawn by the position in the global batch."""
    x = batch[vocab.x]
    drawn = random.uniform(seed, "augment", step, first, [tf.shape(x)[0], *x.shape[1:]])
    return {**batch, vocab.x: x + _LARGEST_NOISE * (2 * drawn - 1)}
