"""Event files for TensorBoard: one writer for training, one for each evaluated split.

Every tag is a name of the vocabulary. Values are those of the whole global batch, reduced over replicas.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from ..vocab import vocab
from . import events
from .errors import UserError

_SAMPLES = 16
_PICTURES = ".pictures"
_HPARAMS = ".hparams"


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
        self._traced: dict[tuple[str, ...], Callable[..., None]] = {}

    def scalars(self, steps: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """Writes curves in one call: an eager summary takes as long as a small training step.

        Args:
            steps: ``[n] int64``.
            values: by tag, ``[n] float32``.
        """
        tags = tuple(values)
        rows = np.stack(list(values.values()), axis=1)
        with self._told_in_one_line():
            if tags not in self._traced:
                self._traced[tags] = self._trace(tags)
            self._traced[tags](tf.constant(steps, tf.int64), tf.constant(rows, tf.float32))

    def images(self, x: Any, step: int) -> None:
        """Writes the first of ``x``, if it is a batch of images, as the picture ``x``."""
        if are_images(x):
            with self._told_in_one_line(), self._writer.as_default(step):
                tf.summary.image(vocab.x, x[:_SAMPLES], max_outputs=_SAMPLES)

    def histograms(self, step: int, values: Mapping[str, tf.Tensor]) -> None:
        """Writes the distribution of each of ``values``, by tag."""
        with self._told_in_one_line(), self._writer.as_default(step):
            for tag, value in values.items():
                tf.summary.histogram(tag, value)

    def graph(self, graph: tf.Graph) -> None:
        """Writes the operations of a graph, by the scopes that they are in."""
        with self._told_in_one_line(), self._writer.as_default():
            tf.summary.graph(graph)

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

    def _trace(self, tags: tuple[str, ...]) -> Callable[..., None]:
        def write(steps: tf.Tensor, rows: tf.Tensor) -> None:
            with self._writer.as_default():
                for i in tf.range(tf.shape(steps)[0]):
                    with tf.name_scope(""):  # else the loop's scope becomes part of the tags
                        for tag, value in zip(tags, tf.unstack(rows[i]), strict=True):
                            tf.summary.scalar(tag, value, step=steps[i])

        specs = (tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, len(tags)], tf.float32))
        return tf.function(write).get_concrete_function(*specs)


def write_hparams(folder: Path, values: Mapping[str, bool | int | float | str]) -> None:
    """Writes the hyper-parameters of the run in ``folder``, in place of those written before.

    TensorBoard's HParams compares the runs by those that differ, and finds their figures in their event files.
    """
    with _replaced(folder, _HPARAMS):
        hparams.hparams(dict(values))


def are_images(x: Any) -> bool:
    """Says whether a batch of inputs can be shown as pictures."""
    return not isinstance(x, Mapping) and len(x.shape) == 4 and x.shape[-1] in (1, 3)


def write_pictures(folder: Path, pictures: Mapping[str, bytes], step: int) -> None:
    """Writes PNG pictures by tag, in place of those that this function wrote into ``folder`` before."""
    with _replaced(folder, _PICTURES):
        for tag, png in pictures.items():
            tf.summary.image(tag, tf.io.decode_png(png, channels=3)[tf.newaxis], step)


@contextlib.contextmanager
def _replaced(folder: Path, suffix: str) -> Iterator[None]:
    """Makes a new event file the default writer, in place of those of this suffix."""
    for path in folder.glob(f"{events.PATTERN}{suffix}"):
        path.unlink()
    with tf.summary.create_file_writer(str(folder), filename_suffix=suffix).as_default():
        yield
        tf.summary.flush()
