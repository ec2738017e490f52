"""Files that are replaced whole: a reader sees the old one or the new one, never a part."""

import json
import math
import os
from pathlib import Path
from typing import Any

from .errors import UserError


def write(path: Path, contents: bytes) -> None:
    """Writes ``contents`` beside ``path`` and renames it.

    Raises:
        UserError: it cannot be written; what was there is as it was.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UserError(
            f"{path} could not be written ({error.strerror}); make room or give access and run the "
            "command again"
        ) from None


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
