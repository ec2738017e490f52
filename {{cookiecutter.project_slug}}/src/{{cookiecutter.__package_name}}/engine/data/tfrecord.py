"""The TFRecord format: what stands around a record in a file.

https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details: the length of the record, a checksum
of the length, the record, a checksum of the record.
"""

import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import google_crc32c

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _LENGTH.size + _CHECKSUM.size
FRAME_BYTES = HEADER_BYTES + _CHECKSUM.size
"""What a record takes in a file beyond its own length."""


def frame(record: bytes) -> bytes:
    """Returns a record as it stands in a file."""
    return b"".join((_header(len(record)), record, _masked_checksum(record)))


def unframe(framed: bytes) -> bytes | None:
    """Returns the record in what was read from a file, None if it is not what was written."""
    record = framed[HEADER_BYTES : -_CHECKSUM.size]
    is_intact = framed.startswith(_header(len(record))) and framed.endswith(
        _masked_checksum(record)
    )
    return record if is_intact else None


def record_span(contents: bytes, start: int) -> tuple[int, int] | None:
    """Returns where the record lies whose frame begins at ``start``, None if the file ends before it does."""
    if start + FRAME_BYTES > len(contents):
        return None
    (length,) = _LENGTH.unpack_from(contents, start)
    first = start + HEADER_BYTES
    return (first, first + length) if start + FRAME_BYTES + length <= len(contents) else None


class File:
    """An open file that closes when the last thread has let go of it."""

    def __init__(self, path: Path) -> None:
        """Opens the file."""
        self._descriptor = -1
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = threading.Lock()

    def read(self, size: int, offset: int) -> bytes:
        """Returns ``size`` bytes from ``offset`` on, fewer where the file ends; safe in several threads."""
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, size, offset)
        with self._lock:  # Windows has one position for all threads
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            return os.read(self._descriptor, size)

    # The default keeps ``close`` alive at the interpreter's end, when modules are already empty.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if self._descriptor >= 0:
            close(self._descriptor)


def _header(length: int) -> bytes:
    packed = _LENGTH.pack(length)
    return packed + _masked_checksum(packed)


def _masked_checksum(data: bytes) -> bytes:
    """CRC-32C, rotated and shifted by a constant, as the checksum of a checksum would be weak."""
    checksum = google_crc32c.value(data)
    masked = (checksum >> 15 | checksum << 17) + 0xA282EAD8
    return _CHECKSUM.pack(masked & 0xFFFFFFFF)
