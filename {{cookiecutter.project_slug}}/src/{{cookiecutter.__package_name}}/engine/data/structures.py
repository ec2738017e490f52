"""Batches as structures of tensors."""

from typing import Any

import tensorflow as tf


def cut(structure: Any, parts: int) -> list[Any]:
    """Returns tensors ``[batch, ...]``, in any structure and with None among them, in parts of equal size."""
    pieces = [
        [None] * parts if t is None else tf.split(t, parts) for t in tf.nest.flatten(structure)
    ]
    return [tf.nest.pack_sequence_as(structure, some) for some in zip(*pieces, strict=True)]
