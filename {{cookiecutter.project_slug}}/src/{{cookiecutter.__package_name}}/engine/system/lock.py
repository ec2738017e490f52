"""The lock of a run's folder: one process trains in it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import filelock

from ..errors import UserError


@contextlib.contextmanager
def lock_folder(model_dir: str) -> Iterator[None]:
    """Makes the folder of a run and holds its lock, which the system releases however the process ends.

    Raises:
        UserError: the folder cannot be written, or another process trains in it.
    """
    folder = Path(model_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / ".lock").acquire(blocking=False)
    except filelock.Timeout:
        raise UserError(
            f"--model_dir={model_dir}: another process trains there; wait for it or name another"
        ) from None
    except OSError as error:
        raise UserError(
            f"--model_dir={model_dir}: cannot be written ({error.strerror}); name a folder that can"
        ) from None
    with lock:
        yield
