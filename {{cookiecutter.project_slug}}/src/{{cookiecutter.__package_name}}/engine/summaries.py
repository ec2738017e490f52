"""What TensorBoard shows: curves, images, histograms, texts, the graph, hyper-parameters.

``write`` is for models and actions; ``Writer`` writes event files. They are written without ``tf.summary``, whose
operations take five times as long: as long as a small training step. Values are those of the whole global batch.
"""

import contextlib
import itertools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.histogram.metadata import create_summary_metadata as of_histogram
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.image.metadata import create_summary_metadata as of_image
from tensorboard.plugins.text.metadata import create_summary_metadata as of_text
from tensorboard.util.tensor_util import make_tensor_proto

from .data.tfrecord import frame
from .errors import UserError
from .run import events

KINDS = ("scalar", "histogram", "images", "text")
Shown = dict[str, tuple[str, Any]]
"""Kind and value by name; a scalar as a list of all that were written."""

_MOST_IMAGES = 16
_BUCKETS = 30  # of a histogram, as many as tf.summary has
_PICTURES = ".pictures"
_HPARAMS = ".hparams"

_numbers = itertools.count()
_current = threading.local()  # replicas are traced in threads of their own


def write(kind: str, name: str, value: Any) -> None:
    """Shows a value in TensorBoard.

    In a training step, which a model's ``optimize`` takes, it is shown whenever curves are written, joined over
    replicas (of texts, those of the first); a scalar is a curve, like those that ``optimize`` returns. In an action it
    is shown at once. Anywhere else (evaluation, an export) it does nothing.

    Args:
        kind: one of ``KINDS``.
        name: its tag.
        value: a scalar; or ``[n, ...]``: numbers of a histogram, images ``[n, height, width, 1 or 3]`` (uint8, or
            float in [0, 1]) of which the first 16 are shown, or texts ``[n] string``.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    receive = getattr(_current, "receive", None)
    if receive is not None:
        receive(kind, name, value)


@contextlib.contextmanager
def receiving(receive: Callable[[str, str, Any], None] | None = None) -> Iterator[Shown]:
    """Within it, ``write`` calls ``receive``, or puts its values into what this yields."""
    shown: Shown = {}

    def keep(kind: str, name: str, value: Any) -> None:
        value = tf.convert_to_tensor(value)
        value = value[tf.newaxis] if kind == "scalar" else value
        # A loss is computed for each micro-batch.
        joined = tf.concat([shown[name][1], value], axis=0) if name in shown else value
        shown[name] = (kind, joined)

    before = getattr(_current, "receive", None)
    _current.receive = receive or keep
    try:
        yield shown
    finally:
        _current.receive = before


class Writer:
    """Writes an event file; what it was given is with the operating system when a method returns."""

    def __init__(self, folder: Path | None, suffix: str = "") -> None:
        """Makes the event file in ``folder``, which TensorBoard shows as one run; None writes nothing.

        Its name is one that no other process gives, and names sort by time.
        """
        self._path: Path | None = None
        if folder is not None:
            parts = (f"{time.time():.0f}", socket.gethostname(), os.getpid(), next(_numbers))
            self._path = folder / ".".join(map(str, (events.PREFIX, *parts)))
            self._path = self._path.with_name(self._path.name + suffix)
            self._write([Event(file_version="brain.Event:2")])

    def scalars(self, steps: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """Writes curves.

        Args:
            steps: ``[n] int64``, rising; steps do not fall from call to call.
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

    def write(self, kind: str, tag: str, value: Any, step: int) -> None:
        """Writes one value; see the function ``write``."""
        array = np.asarray(value)
        if kind == "scalar":
            self.scalars(np.array([step]), {tag: array.reshape(1).astype(np.float32)})
        elif kind == "histogram":
            numbers = array.astype(np.float64)
            counts, edges = np.histogram(numbers[np.isfinite(numbers)], _BUCKETS)
            buckets = np.stack([edges[:-1], edges[1:], counts], axis=1)
            self._write_tensor(tag, buckets, step, of_histogram(None, None))
        elif kind == "images":
            pixels = tf.image.convert_image_dtype(array[:_MOST_IMAGES], tf.uint8, saturate=True)
            self.pictures(tag, [tf.io.encode_png(image).numpy() for image in pixels], step)
        else:
            self._write_tensor(tag, array.reshape(-1).astype(object), step, of_text(None, None))

    def pictures(self, tag: str, pngs: Sequence[bytes], step: int) -> None:
        """Writes pictures of one size, as PNG files, side by side."""
        size = struct.unpack(">II", pngs[0][16:24])  # where every PNG file has width and height
        self._write_tensor(tag, [*(b"%d" % n for n in size), *pngs], step, of_image(None, None))

    def graph(self, inference: Callable[[Any], Any], x: Any, name: str) -> None:
        """Writes the operations from inputs like ``x`` to what ``inference`` returns, in the scopes of their layers."""
        specs = tf.nest.map_structure(
            lambda part: tf.TensorSpec([None, *part.shape[1:]], part.dtype, name=name), x
        )
        graph = tf.function(inference).get_concrete_function(specs).graph
        self._write([Event(graph_def=graph.as_graph_def(add_shapes=True).SerializeToString())])

    def hparams(self, values: Mapping[str, bool | int | float | str]) -> None:
        """Writes the hyper-parameters of a run."""
        self._write([Event(summary=hparams.hparams_pb(dict(values)))])

    def _write_tensor(self, tag: str, value: Any, step: int, metadata: SummaryMetadata) -> None:
        shown = Summary.Value(tag=tag, tensor=make_tensor_proto(value), metadata=metadata)
        self._write([Event(step=step, summary=Summary(value=[shown]))])

    def _write(self, written: Iterable[Event]) -> None:
        if self._path is None:
            return
        frames, now = b"", time.time()
        for event in written:
            event.wall_time = now
            frames += frame(event.SerializeToString())
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab", buffering=0) as file:
                while frames:
                    frames = frames[file.write(frames) :]
        except OSError as error:
            raise UserError(
                f"{self._path.parent}: the event file could not be written ({error.strerror}); make room "
                "or give access and run the command again"
            ) from None


def write_hparams(folder: Path, values: Mapping[str, bool | int | float | str]) -> None:
    """Writes the hyper-parameters of the run in ``folder``, in place of those written before.

    TensorBoard's HParams compares the runs by those that differ, and finds their metrics in their event files.
    """
    _replacing(folder, _HPARAMS).hparams(values)


def are_images(x: Any) -> bool:
    """Returns whether a batch of inputs can be shown as pictures."""
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
    return Writer(folder, suffix)
