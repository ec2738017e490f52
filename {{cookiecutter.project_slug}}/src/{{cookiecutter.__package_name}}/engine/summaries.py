"""Event files for TensorBoard: one writer for training, one for each evaluated split.

Every tag is a name of the vocabulary. Values are those of the whole global batch, reduced over replicas.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import tensorflow as tf

from ..vocab import vocab
from .errors import UserError

_SAMPLES = 16


class Writer:
    """Writes one event file; a tag and a step get one value."""

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        """Makes the event file in ``folder``, which TensorBoard shows as one run; or none, if not ``writes``."""
        self._folder = folder
        with self._told_in_one_line():
            self._writer = (
                tf.summary.create_file_writer(str(folder))
                if writes
                else tf.summary.create_noop_writer()
            )
        # One call writes many values: an eager summary takes as long as a small training step.
        self._write = tf.function(self._write_rows, reduce_retracing=True)

    def scalars(self, steps: tf.Tensor, values: Mapping[str, tf.Tensor]) -> None:
        """Writes curves.

        Args:
            steps: ``[n] int64``.
            values: by tag, ``[n] float32``.
        """
        with self._told_in_one_line():
            self._write(steps, dict(values))

    def images(self, x: tf.Tensor, step: int) -> None:
        """Writes the first of ``x``, if it is a batch of images, as the picture ``x``."""
        if x.shape.rank == 4 and x.shape[-1] in (1, 3, 4):
            with self._told_in_one_line(), self._writer.as_default(step):
                tf.summary.image(vocab.x, x[:_SAMPLES], max_outputs=_SAMPLES)

    def histograms(self, step: int, values: Mapping[str, tf.Tensor]) -> None:
        """Writes the distribution of each of ``values``, by tag."""
        with self._told_in_one_line(), self._writer.as_default(step):
            for tag, value in values.items():
                tf.summary.histogram(tag, value)

    def flush(self) -> None:
        """Puts on disk what was written."""
        with self._told_in_one_line():
            self._writer.flush()

    @contextlib.contextmanager
    def _told_in_one_line(self) -> Iterator[None]:
        try:
            yield
        except tf.errors.OpError as error:
            raise UserError(
                f"{self._folder}: the event file could not be written ({error.message}); make room or "
                "give access and run the command again"
            ) from error

    def _write_rows(self, steps: tf.Tensor, values: Mapping[str, tf.Tensor]) -> None:
        with self._writer.as_default():
            for i in tf.range(tf.shape(steps)[0]):
                with tf.name_scope(""):  # else the loop's scope becomes part of the tags
                    for tag, row in values.items():
                        tf.summary.scalar(tag, row[i], step=steps[i])
