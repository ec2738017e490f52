"""Where examples come from: by random access for training and evaluation, one at a time to predict.

``Examples`` is all that batches ask of a split: how many there are, and a function that fetches any of them by index.
``open_split`` reads the shards that ``prepare`` wrote; a project with a reader of its own returns its own ``Examples``.

A split that fits is decoded once and kept in memory; of a larger one, the examples of each batch are read from the
shards at their offsets. Both give the same batches.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from .data import records
from .dataset import Dataset, by_column
from .options import DEFAULT_IN_MEMORY_MB

Batch = dict[str, Any]
"""Tensors by feature; ``x`` may be a dictionary of tensors."""

IN_MEMORY_BYTES = DEFAULT_IN_MEMORY_MB * 2**20
_CHUNK = 1_024  # examples decoded at once when a split is loaded


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of a split, by random access."""

    examples: int
    """How many there are."""

    fetch: Callable[[tf.Tensor], Batch]
    """From indices, ``[n] int64``, to those examples, ``[n, ...]`` each: ``x``, ``y`` and any other feature.

    It runs in the input pipeline, in several threads, and returns the same for the same indices."""

    example_bytes: int
    """Size of one of them, decoded."""

    in_memory: bool
    """Whether memory holds them; otherwise each batch reads its own."""


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Examples to predict, read one at a time."""

    names: list[str]
    """Of each example, for the output and for messages."""

    read: Callable[[int], dict[str, np.ndarray]]
    """From the index of an example to the model's inputs by name, without the batch; raises UserError."""


def open_split(
    dataset: Dataset, name: str, *, limit: int | None = None, in_memory_bytes: int = IN_MEMORY_BYTES
) -> Examples:
    """Opens the split ``name``, in memory if it needs at most ``in_memory_bytes`` when decoded.

    Args:
        dataset: as ``dataset.load`` returns it.
        name: ``train``, ``validation`` or ``test``.
        limit: take only this many of its first examples; shards hold them in random order.
        in_memory_bytes: see above.
    """
    examples = min(dataset.splits[name].examples, limit or dataset.splits[name].examples)
    reader = records.Reader(dataset.folder, name, dataset.splits[name])

    def read(indices: tf.Tensor) -> dict[str, tf.Tensor]:
        serialized = tf.numpy_function(reader.read, [indices], tf.string, stateful=False)
        return records.parse(tf.ensure_shape(serialized, [None]), dataset.features)

    size = dataset.example_bytes
    if examples * size > in_memory_bytes:
        return Examples(examples, lambda indices: by_column(read(indices)), size, in_memory=False)
    indices = tf.data.Dataset.range(examples).batch(_CHUNK)
    chunks = list(indices.map(read, num_parallel_calls=tf.data.AUTOTUNE))
    with tf.device("CPU:0"):  # else it takes memory of the first GPU
        table = {key: tf.concat([chunk[key] for chunk in chunks], axis=0) for key in chunks[0]}

    def gather(indices: tf.Tensor) -> Batch:
        return by_column({key: tf.gather(values, indices) for key, values in table.items()})

    return Examples(examples, gather, size, in_memory=True)
