"""Replaces a prepared data set by a new one: all of it or nothing.

The new one is written into ``.<data_dir>.prepare`` beside ``data_dir`` and renamed when it is complete, so at no moment
does ``data_dir`` hold part of a data set. What a killed ``prepare`` left is put right by the next.
"""

import contextlib
import filecmp
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import filelock

from .. import dataset
from ..errors import UserError
from ..system.files import staged


class _UnchangedError(Exception):
    """The data set that is there is the new one."""


def replace(
    data_dir: str | Path,
    write: Callable[[Path], None],
    *,
    source: str,
    seed: int,
    overwrite: bool,
) -> bool:
    """Makes ``data_dir`` the data set that ``write`` writes into the empty folder it is given.

    Args:
        data_dir: where the data set is to be; where it is a link, what that points to is replaced.
        write: writes the examples and ``dataset.json``.
        source: what ``write`` will put into ``dataset.json``; another one is refused before anything is written.
        seed: likewise.
        overwrite: whether another data set that is there already may be replaced.

    Returns:
        False if the same data set was there already; it is left as it is.

    Raises:
        UserError: ``data_dir`` holds another data set, or anything else; another ``prepare`` is writing it; it cannot
            be written.
    """
    target = Path(os.path.realpath(data_dir))
    another = UserError(
        f"--data_dir={target}: holds another data set; name another folder, or pass --overwrite to "
        "replace it"
    )
    try:
        _existing(target, overwrite)  # refused before anything is written beside it
        with _locked(target) as work, staged(target, folder=work / "staging") as staging:
            old = _existing(target, overwrite)  # again, now that nobody else can change it
            if old and not overwrite and (old.source, old.seed) != (source, seed):
                raise another
            new = staging / target.name
            new.mkdir()
            write(new)
            if old and _same([dataset.FILE], new, target):
                if _same(old.files, new, target):
                    raise _UnchangedError
                # Otherwise its files are damaged, and replaced by good ones.
            elif old and not overwrite:
                raise another
    except _UnchangedError:
        return False
    except OSError as error:
        raise UserError(
            f"--data_dir={data_dir}: {error.filename or target} cannot be written "
            f"({error.strerror or error}); make room or choose a folder in one that you may write to"
        ) from None
    return True


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[Path]:
    """Yields a folder beside ``target`` that no other process uses, and removes it at the end."""
    work = target.with_name(f".{target.name}.prepare")
    work.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(work / "lock", blocking=False):
            old = work / "old"  # where the last release, if killed, left what it was replacing
            if old.exists() and not target.exists():
                old.rename(target)
            try:
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except filelock.Timeout:
        raise UserError(
            f"--data_dir={target}: another prepare is writing it; wait until it has ended"
        ) from None


def _existing(target: Path, overwrite: bool) -> dataset.Dataset | None:
    """Returns the data set in ``target``, None if there is nothing or it is damaged and may be replaced."""
    if not target.exists():
        return None
    if not target.is_dir():
        raise UserError(f"--data_dir={target}: is a file; name a folder")
    names = {path.name for path in target.iterdir()}
    if not names:
        return None
    found, damage = None, None
    try:
        found = dataset.read_description(target)
    except UserError as error:
        damage = error
    ours = {dataset.FILE, *map(dataset.index_file, dataset.SPLITS)}
    ours |= {Path(file).parts[0] for file in found.files} if found else set()
    foreign = sorted(
        name
        for name in names - ours
        if not (name.endswith(".tfrecord") and name.startswith(dataset.SPLITS))
    )
    if foreign or dataset.FILE not in names:
        raise UserError(
            f"--data_dir={target}: holds what prepare did not write, such as "
            f"{(foreign or sorted(names))[0]!r}; name a new folder"
        )
    if damage and not overwrite:
        raise UserError(f"{damage}, and --overwrite to replace what is there")
    return found


def _same(names: Sequence[str], one: Path, other: Path) -> bool:
    """Says whether the files of these names are in both folders with the same bytes."""
    same, _, _ = filecmp.cmpfiles(one, other, names, shallow=False)
    return len(same) == len(names)
