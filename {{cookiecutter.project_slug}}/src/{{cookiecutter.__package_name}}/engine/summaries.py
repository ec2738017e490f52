"""What event files hold for TensorBoard: curves, pictures, distributions, the graph, hyper-parameters.

Every tag is a name of the vocabulary. Values are those of the whole global batch, reduced over replicas.
"""

import contextlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.histogram.metadata import create_summary_metadata as of_histogram
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.image.metadata import create_summary_metadata as of_image
from tensorboard.util.tensor_util import make_tensor_proto

from ..vocab import vocab
from .errors import UserError
from .report import events

_SAMPLES = 16
_BUCKETS = 30  # of a histogram, as many as tf.summary has
_PICTURES = ".pictures"
_HPARAMS = ".hparams"


class Writer:
    """Writes one event file; a tag and a step get one value, and steps do not fall."""

    def __init__(self, folder: Path, *, writes: bool = True, suffix: str = "") -> None:
        """Makes the event file in ``folder``, which TensorBoard shows as one run; or none, if not ``writes``."""
        self._folder = folder
        self._file = None
        if writes:
            with self._told_in_one_line():
                self._file = events.EventFile(folder, suffix)

    def scalars(self, steps: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """Writes curves.

        Args:
            steps: ``[n] int64``, rising.
            values: by tag, ``[n] float32``.
        """
        rows = np.stack(list(values.values()), axis=1).tolist()
        self._write(
            Event(
                step=step,
                summary=Summary(
                    value=[
                        Summary.Value(tag=tag, simple_value=value)
                        for tag, value in zip(values, row, strict=True)
                    ]
                ),
            )
            for step, row in zip(steps.tolist(), rows, strict=True)
        )

    def images(self, x: Any, step: int) -> None:
        """Writes the first of ``x``, if it is a batch of images, as the picture ``x``."""
        if are_images(x):
            pixels = tf.image.convert_image_dtype(x[:_SAMPLES], tf.uint8, saturate=True)
            self.pictures(vocab.x, [tf.io.encode_png(image).numpy() for image in pixels], step)

    def pictures(self, tag: str, pngs: Sequence[bytes], step: int) -> None:
        """Writes pictures of one size, as PNG files, side by side."""
        size = struct.unpack(">II", pngs[0][16:24])  # where every PNG file has width and height
        self._write_tensor(tag, [*(b"%d" % n for n in size), *pngs], step, of_image(None, None))

    def histograms(self, step: int, values: Mapping[str, tf.Tensor]) -> None:
        """Writes the distribution of each of ``values``, by tag."""
        for tag, value in values.items():
            numbers = np.asarray(value, np.float64)
            counts, edges = np.histogram(numbers[np.isfinite(numbers)], _BUCKETS)
            buckets = np.stack([edges[:-1], edges[1:], counts], axis=1)
            self._write_tensor(tag, buckets, step, of_histogram(None, None))

    def graph(self, graph: tf.Graph) -> None:
        """Writes the operations of a graph, by the scopes that they are in."""
        self._write([Event(graph_def=graph.as_graph_def(add_shapes=True).SerializeToString())])

    def hparams(self, values: Mapping[str, bool | int | float | str]) -> None:
        """Writes the hyper-parameters of a run."""
        self._write([Event(summary=hparams.hparams_pb(dict(values)))])

    def _write_tensor(self, tag: str, value: Any, step: int, metadata: SummaryMetadata) -> None:
        shown = Summary.Value(tag=tag, tensor=make_tensor_proto(value), metadata=metadata)
        self._write([Event(step=step, summary=Summary(value=[shown]))])

    def _write(self, written: Iterable[Event]) -> None:
        if self._file is not None:
            with self._told_in_one_line():
                self._file.write(written)

    @contextlib.contextmanager
    def _told_in_one_line(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._folder}: the event file could not be written ({error.strerror}); make room or "
                "give access and run the command again"
            ) from None


def write_hparams(folder: Path, values: Mapping[str, bool | int | float | str]) -> None:
    """Writes the hyper-parameters of the run in ``folder``, in place of those written before.

    TensorBoard's HParams compares the runs by those that differ, and finds their figures in their event files.
    """
    _replacing(folder, _HPARAMS).hparams(values)


def are_images(x: Any) -> bool:
    """Says whether a batch of inputs can be shown as pictures."""
    return not isinstance(x, Mapping) and len(x.shape) == 4 and x.shape[-1] in (1, 3)


def write_pictures(folder: Path, pictures: Mapping[str, bytes], step: int) -> None:
    """Writes PNG pictures by tag, in place of those that this function wrote into ``folder`` before."""
    writer = _replacing(folder, _PICTURES)
    for tag, png in pictures.items():
        writer.pictures(tag, [png], step)


def _replacing(folder: Path, suffix: str) -> Writer:
    """Returns a writer in place of those of this suffix."""
    for path in folder.glob(f"{events.PATTERN}{suffix}"):
        path.unlink()
    return Writer(folder, suffix=suffix)
