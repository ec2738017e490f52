"""Small text files, replaced whole: a reader sees the old one or the new one, never a part."""

import os
from pathlib import Path

from .errors import UserError


def write_text(path: Path, text: str) -> None:
    """Writes ``text`` beside ``path`` and renames it.

    Raises:
        UserError: it cannot be written; what was there is as it was.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UserError(
            f"{path} could not be written ({error.strerror}); make room or give access and run the "
            "command again"
        ) from None
