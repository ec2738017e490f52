"""Files and folders that are replaced whole: a reader finds the old one or the new one, never a part."""

import contextlib
import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import UserError


@contextlib.contextmanager
def staged(*paths: Path, folder: Path | None = None) -> Iterator[Path]:
    """Yields an empty staging folder to write ``paths`` in, by their names; they take their places at the end.

    All of them are flushed to disk first and then renamed in the order given: the one that makes the others valid comes
    last. If the body raises, what was there before stays. What a killed process left behind is put right.

    Args:
        paths: files or folders in one parent folder, which exists.
        folder: the staging folder, on the same file system; by default ``.<name of the first path>.writing``.
            Give one where names differ from call to call, or nobody would clean up after a killed process.

    Raises:
        OSError: something could not be written or renamed.
    """
    staging = folder or paths[0].with_name(f".{paths[0].name}.writing")
    replaced = {path: staging / f"{path.name}.old" for path in paths}
    for path, old in replaced.items():
        if old.exists() and not path.exists():  # killed between the two renames below
            old.rename(path)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        yield staging
        for path in paths:
            _flush(staging / path.name)
        for path, old in replaced.items():
            new = staging / path.name
            if new.is_dir() and path.is_dir():  # only a file takes another's place in one rename
                path.rename(old)
            try:
                new.replace(path)
            except OSError:
                if old.exists():
                    old.rename(path)
                raise
        _flush_names(paths[0].parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yields a file that takes the place of ``path`` at the end.

    Raises:
        UserError: it cannot be written; what was there is as it was.
    """
    try:
        with staged(path) as staging, (staging / path.name).open("wb") as file:
            yield file
    except OSError as error:
        raise UserError(
            f"{path} could not be written ({error.strerror}); make room or give access and run the "
            "command again"
        ) from None


def write(path: Path, contents: bytes) -> None:
    """Replaces a file by one with ``contents``; raises what ``replacing`` raises."""
    with replacing(path) as file:
        file.write(contents)


def write_text(path: Path, text: str) -> None:
    """Replaces a file by one with ``text``, in UTF-8; raises what ``replacing`` raises."""
    write(path, text.encode())


def to_json(value: Any, **options: Any) -> str:
    """Returns JSON that any program reads: NaN and Inf, which JSON does not have, become null."""

    def finite(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: finite(inner) for name, inner in part.items()}
        if isinstance(part, list | tuple):
            return [finite(inner) for inner in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(finite(value), allow_nan=False, **options)


def _flush(path: Path) -> None:
    """Flushes a file, or a folder and all in it, to disk."""
    for part in (path, *path.rglob("*")):
        if part.is_dir():
            _flush_names(part)
        else:
            with part.open("rb+") as file:
                os.fsync(file.fileno())


def _flush_names(folder: Path) -> None:
    """Flushes the names in a folder to disk; Windows and some network file systems cannot."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
