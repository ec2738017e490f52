"""Event files after a stop: drops what was written after the checkpoint that a run resumes from.

Without it the steps between the checkpoint and the stop would be in the curves twice.
"""

from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event

from .tfrecord import frame


def drop_after(folder: Path, step: int) -> None:
    """Removes the events of steps after ``step`` from the event files in ``folder``.

    A file that ends in the middle of an event, because its process was killed, loses that event.
    """
    for path in sorted(folder.glob("events.out.tfevents.*")):
        if path.name.endswith(".new"):
            path.unlink()
            continue
        kept = b"".join(frame(r) for r in _records(path) if Event.FromString(r).step <= step)
        if len(kept) != path.stat().st_size:
            beside = path.with_name(path.name + ".new")
            beside.write_bytes(kept)
            beside.replace(path)


def _records(path: Path) -> Iterator[bytes]:
    try:
        yield from tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    except tf.errors.DataLossError:
        return
