"""Event files: what TensorBoard reads, records of ``Event``.

They are written without ``tf.summary``, whose operations take five times as long: as long as a small training step.
A run that resumes drops what was written after its checkpoint, or steps would be in the curves twice.
"""

import bisect
import itertools
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

from ..data.tfrecord import FRAME_BYTES, HEADER_BYTES, frame, record_span

PREFIX = "events.out.tfevents"
PATTERN = f"{PREFIX}.*"

_numbers = itertools.count()


class EventFile:
    """A new event file; what was given to ``write`` is with the operating system when it returns."""

    def __init__(self, folder: Path, suffix: str = "") -> None:
        """Makes it in ``folder``, with a name that no other process gives and that sorts by time.

        Raises:
            OSError: it cannot be written; ``write`` raises it, too.
        """
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{PREFIX}.{time.time():.0f}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{suffix}"
        self._path = folder / name
        self.write([Event(file_version="brain.Event:2")])

    def write(self, events: Iterable[Event]) -> None:
        """Appends events; their steps must not fall."""
        now = time.time()
        frames = b""
        for event in events:
            event.wall_time = now
            frames += frame(event.SerializeToString())
        with self._path.open("ab", buffering=0) as file:
            while frames:
                frames = frames[file.write(frames) :]


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Returns the curves in the event files of ``folder``, by tag: (step, value) in rising order."""
    curves: dict[str, dict[int, float]] = {}
    for path in sorted(folder.glob(PATTERN)):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "scalars":
                    number = float(tf.make_ndarray(value.tensor))
                    curves.setdefault(value.tag, {})[event.step] = number
    return {tag: sorted(curve.items()) for tag, curve in curves.items()}


def drop_after(folder: Path, step: int) -> None:
    """Cuts the event files in ``folder`` off before the first event of a step after ``step``.

    Steps rise within a file, so that few events have to be looked at. One that is not whole, because its process
    was killed, goes too.
    """
    for path in sorted(folder.glob(PATTERN)):
        contents = path.read_bytes()
        spans, end = [], 0
        while (span := record_span(contents, end)) is not None:
            spans.append(span)
            end = span[1] + FRAME_BYTES - HEADER_BYTES
        kept = bisect.bisect_right(
            spans, step, key=lambda span: Event.FromString(contents[slice(*span)]).step
        )
        if kept < len(spans):
            end = spans[kept][0] - HEADER_BYTES
        if end < len(contents):
            os.truncate(path, end)
