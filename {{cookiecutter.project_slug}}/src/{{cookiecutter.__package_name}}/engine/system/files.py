"""Files that are replaced whole: a reader sees the old one or the new one, never a part."""

import contextlib
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import UserError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yields a file beside ``path`` that takes its place in the end.

    Raises:
        UserError: it cannot be written; what was there is as it was.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise UserError(
            f"{path} could not be written ({error.strerror}); make room or give access and run the "
            "command again"
        ) from None
    finally:
        beside.unlink(missing_ok=True)


def write(path: Path, contents: bytes) -> None:
    """Writes ``contents`` beside ``path`` and renames it; raises what ``replacing`` raises."""
    with replacing(path) as file:
        file.write(contents)


def write_text(path: Path, text: str) -> None:
    """Writes ``text``, as ``write`` does."""
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
