"""The files that a name, a folder or a pattern stands for."""

import glob
from collections.abc import Sequence
from pathlib import Path

from .errors import UserError


def expand(flag: str, patterns: Sequence[str], extensions: Sequence[str]) -> list[Path]:
    """Returns the files that ``patterns`` name, those of each in the order of their names.

    Args:
        flag: that the patterns come from, for messages: ``--input``.
        patterns: files, folders (all files below them, hidden ones left out) or shell patterns.
        extensions: in lower case, of the files to take from folders: ``.png``.

    Raises:
        UserError: one of the patterns names no file.
    """
    if not patterns:
        raise UserError(f"{flag} is missing: name a file, a folder or a pattern")
    files: list[Path] = []
    for pattern in patterns:
        path = Path(pattern)
        problem = "no such file; name a file, folder or pattern"
        if path.is_dir():
            found = [p for p in sorted(path.rglob("*")) if _is_wanted(p, path, extensions)]
            problem = f"holds no {' or '.join(extensions)} file"
        elif path.exists():
            found = [path]
        else:
            found = [Path(p) for p in sorted(glob.glob(pattern, recursive=True))]
            found = [p for p in found if p.is_file()]
        if not found:
            raise UserError(f"{flag}={pattern}: {problem}")
        files += found
    return files


def _is_wanted(path: Path, folder: Path, extensions: Sequence[str]) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and path.suffix.lower() in extensions and path.is_file()
