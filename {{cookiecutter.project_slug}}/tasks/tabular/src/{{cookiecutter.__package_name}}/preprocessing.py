"""From raw cells to the numbers that the network takes; part of the model and of every export. Yours to edit.

The layers are Keras's, built from the constants in ``dataset.json``: nothing here is trained, and nothing has to be
adapted, saved or shared among devices.
"""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from .columns import BUCKETS, CATEGORY, NUMBER, Column

# No cell of a table holds it, and Keras wants one for what is not in the vocabulary.
_OTHER = "\0"


class Preprocessing(tf.Module):
    """Turns a value for each column into one row of numbers.

    A number becomes its distance from the mean in standard deviations, 0 when it is missing, and, if numbers were
    missing in training, a second one that says so. A number in buckets and a text become a row of zeros with a one
    at their range or their place in the vocabulary, or, for a text that is not in it, at the first place.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        """Makes the layers for ``columns``."""
        super().__init__(name="preprocessing")
        self._columns = tuple(columns)
        # Keras's Normalization would hold its constants as tensors, which become inputs of an exported graph.
        numbers = self._of_kind(NUMBER)
        self._standardize = keras.layers.Rescaling(
            scale=[1 / column.stddev for column in numbers],
            offset=[-column.mean / column.stddev for column in numbers],
            dtype="float32",
            name="standardize",
        )
        self._discretizations = {
            column.input: keras.layers.Discretization(
                bin_boundaries=list(column.boundaries),
                output_mode="one_hot",
                dtype="float32",
                name=f"discretization_{column.input}",
            )
            for column in self._of_kind(BUCKETS)
        }
        self._lookups = {
            column.input: keras.layers.StringLookup(
                vocabulary=list(column.vocabulary),
                oov_token=_OTHER,
                output_mode="one_hot",
                name=f"lookup_{column.input}",
            )
            for column in self._of_kind(CATEGORY)
        }
        empty = {c.input: tf.constant([""] if c.is_text else [0.0]) for c in columns}
        self.width = int(self(empty).shape[-1])
        """Length of a row."""

    def __call__(self, x: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Returns ``[batch, width] float32``.

        Args:
            x: for each column ``[batch]``: float32, not a number where one is missing, or string.
        """
        parts = []
        if numbers := self._of_kind(NUMBER):
            scaled = self._standardize(tf.stack([x[column.input] for column in numbers], axis=-1))
            parts.append(tf.where(tf.math.is_nan(scaled), 0.0, scaled))
        for column in self._columns:
            if column.kind == BUCKETS:
                value = x[column.input]
                is_missing = tf.math.is_nan(value)
                one_hot = self._discretizations[column.input](tf.where(is_missing, 0.0, value))
                parts.append(tf.where(is_missing[:, tf.newaxis], 0.0, one_hot))
            if column.kind == CATEGORY:
                parts.append(tf.cast(self._lookups[column.input](x[column.input]), tf.float32))
            elif column.has_missing:
                is_missing = tf.math.is_nan(x[column.input])
                parts.append(tf.cast(is_missing, tf.float32)[:, tf.newaxis])
        return tf.concat(parts, axis=-1)

    def _of_kind(self, kind: str) -> list[Column]:
        return [column for column in self._columns if column.kind == kind]
