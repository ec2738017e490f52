"""Event files, as TensorBoard and a run that resumes read them: records of ``Event``.

A run that resumes drops what was written after its checkpoint, or steps would be in the curves twice.
"""

import bisect
import os
from pathlib import Path

import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

from ..data.tfrecord import FRAME_BYTES, HEADER_BYTES, record_span

PREFIX = "events.out.tfevents"
PATTERN = f"{PREFIX}.*"


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
