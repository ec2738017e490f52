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


def replace(
    data_dir: str | Path,
    write: Callable[[Path], None],
    *,
    source: str,
    seed: int,
    overwrite: bool,
) -> bool:
    """Makes ``data_dir`` the data set that ``write`` writes.

    Args:
        data_dir: where the data set is to be.
        write: called once with an empty folder, which it fills with shards, indices and ``dataset.json``.
        source: what the data set is prepared from, as ``write`` will put it into ``dataset.json``.
        seed: likewise.
        overwrite: whether another data set that is there already may be replaced.

    Returns:
        False if the same data set was there already; it is left as it is.

    Raises:
        UserError: ``data_dir`` holds another data set, or anything else; another ``prepare`` is writing it; it cannot
            be written.
    """
    # Where a link points is replaced, not the link.
    target = Path(os.path.realpath(data_dir))
    try:
        # Refused before anything is written beside it; looked at again once nobody else can change it.
        _existing(target, overwrite)
        with _work_folder(target) as work:
            old = _existing(target, overwrite)
            if old and not overwrite and (old.source, old.seed) != (source, seed):
                raise _holds_another(target)
            new = work / "new"
            new.mkdir()
            write(new)
            if old and _same([dataset.FILE], new, target):
                # Otherwise its shards are damaged, and replaced by good ones.
                if _same(old.files, new, target):
                    return False
            elif old and not overwrite:
                raise _holds_another(target)
            _swap(new, target, work / "old")
            return True
    except OSError as error:
        raise UserError(
            f"--data_dir={data_dir}: {error.filename or target} cannot be written "
            f"({error.strerror or error}); "
            "make room or choose a folder in one that you may write to"
        ) from None


@contextlib.contextmanager
def _work_folder(target: Path) -> Iterator[Path]:
    """Yields a folder beside ``target`` that no other process uses, and removes it in the end."""
    work = target.with_name(f".{target.name}.prepare")
    work.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(work / "lock", timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise UserError(
            f"--data_dir={target}: another prepare is writing it; wait until it has ended"
        ) from None
    try:
        # Left by a prepare that was killed: a part of a new data set, or, between two renames, the old one.
        shutil.rmtree(work / "new", ignore_errors=True)
        if (work / "old").exists() and not target.exists():
            (work / "old").rename(target)
        shutil.rmtree(work / "old", ignore_errors=True)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        lock.release()


def _existing(target: Path, overwrite: bool) -> dataset.Dataset | None:
    """Returns the data set in ``target``, None if there is nothing or it is damaged and may be replaced."""
    if not target.exists():
        return None
    if not target.is_dir():
        raise UserError(f"--data_dir={target}: is a file; name a folder")
    names = {path.name for path in target.iterdir()}
    if not names:
        return None
    ours = {dataset.FILE, *map(dataset.index_file, dataset.SPLITS)}
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
    try:
        return dataset.read_description(target)
    except UserError as error:
        if overwrite:
            return None
        raise UserError(f"{error}, and --overwrite to replace what is there") from None


def _holds_another(target: Path) -> UserError:
    return UserError(
        f"--data_dir={target}: holds another data set; name another folder, or pass --overwrite to "
        "replace it"
    )


def _same(names: Sequence[str], one: Path, other: Path) -> bool:
    """Says whether the files of these names are in both folders with the same bytes."""
    same, _, _ = filecmp.cmpfiles(one, other, names, shallow=False)
    return len(same) == len(names)


def _swap(new: Path, target: Path, old: Path) -> None:
    """Puts ``new`` in the place of ``target``, whose data set goes to ``old``."""
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
