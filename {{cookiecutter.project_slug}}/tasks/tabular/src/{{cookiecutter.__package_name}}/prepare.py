"""Turns a table into TFRecord shards with three splits, and ``dataset.json``. Yours to edit.

python -m <package>.prepare --source=iris --data_dir=data
python -m <package>.prepare --source=houses.csv --target=price --data_dir=data
"""

# What takes long to import (TensorFlow, NumPy) is imported where it is used: --help does not wait for it.
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import flags, task_flags
from .engine import command
from .engine.errors import UserError
from .engine.system import startup
from .vocab import vocab

if TYPE_CHECKING:
    from .engine.dataset import Dataset
    from .sources import Table


def main(_: Sequence[str]) -> None:
    """Prepares a data set as the flags say, and prints the number of examples in each split."""
    startup.import_tensorflow()
    from .engine.data import preparing

    prepared = prepare(
        task_flags.SOURCE.value,
        flags.DATA_DIR.value,
        target=task_flags.TARGET.value,
        problem=task_flags.PROBLEM.value,
        kinds={
            name: kind for name, _, kind in (v.rpartition("=") for v in task_flags.COLUMNS.value)
        },
        seed=flags.SEED.value,
        shards=flags.SHARDS.value,
        validation_fraction=flags.VALIDATION_FRACTION.value,
        test_fraction=flags.TEST_FRACTION.value,
        overwrite=flags.OVERWRITE.value,
    )
    preparing.print_counts(prepared)


def prepare(
    source: str,
    data_dir: str | Path,
    *,
    target: str | None = None,
    problem: str | None = None,
    kinds: Mapping[str, str] | None = None,
    seed: int = 0,
    shards: int = 4,
    validation_fraction: float = 0.15,
    test_fraction: float = 0.15,
    overwrite: bool = False,
) -> Dataset:
    """Prepares a data set; the same arguments and source give the same bytes.

    Args:
        source: ``iris``, or the path of a CSV file.
        data_dir: what the data set becomes; it is there when it is complete, and not before.
        target: the column to predict; without one, that of ``iris``.
        problem: ``classification`` or ``regression``; without one, what the target column looks like.
        kinds: kinds by column, where another than the one found is wanted; see ``columns.KINDS``.
        seed: decides which example goes to which split, and their order.
        shards: number of files of the training split; the other splits get files of about the same size.
        validation_fraction: share of the examples that decides which checkpoint is best.
        test_fraction: share of the examples kept for the last evaluation.
        overwrite: whether another data set in ``data_dir`` may be replaced.

    Raises:
        UserError: the source does not make a data set, or ``data_dir`` cannot or must not be written.
    """
    import numpy as np

    from . import columns
    from . import target as targets
    from .engine import dataset
    from .engine.data import preparing, splits
    from .sources import IRIS, IRIS_TARGET, open_table

    table = open_table(source)
    target = _target(table, target or (IRIS_TARGET if source == IRIS else None))
    found, ignored = columns.find_kinds(table, target, kinds or {})
    problem = problem or targets.find_problem(table, target)
    labels, classes = targets.read_labels(table, target, problem)
    values = columns.open_columns(table, found)
    _report(target, problem, found, ignored)

    indices = splits.stratified(
        labels if classes else np.zeros(len(labels), np.int64),
        classes or [table.name],
        validation_fraction=validation_fraction,
        test_fraction=test_fraction,
        seed=seed,
    )
    in_training = indices[dataset.TRAIN]
    described = columns.describe_all(
        {name: found[name] for name in values},
        {name: cells[in_training] for name, cells in values.items()},
    )
    features = {column.feature: column.to_feature() for column in described}
    stored = {column.feature: values[column.name] for column in described} | {vocab.y: labels}
    return preparing.prepare(
        data_dir,
        source=table.name,
        seed=seed,
        features={**features, vocab.y: dataset.Feature(labels.dtype.name, ())},
        classes=classes,
        indices=indices,
        read=lambda number: {name: array[number] for name, array in stored.items()},
        statistics=lambda: {
            "columns": [dataclasses.asdict(column) for column in described],
            "target": target,
            **targets.describe(labels[in_training], len(classes)),
        },
        shards=shards,
        overwrite=overwrite,
    )


def _target(table: Table, target: str | None) -> str:
    listed = ", ".join(repr(name) for name in table.header)
    if target is None:
        raise UserError(
            f"--source={table.path}: say which column to predict with --target; there are {listed}"
        )
    if target not in table.header:
        raise UserError(
            f"--target={target}: {table.path}: line 1 has no column {target!r}; there are {listed}"
        )
    return target


def _report(
    target: str, problem: str, found: Mapping[str, str], ignored: Mapping[str, str]
) -> None:
    """Prints what was found, to be looked at: ``--columns`` and ``--problem`` say otherwise."""
    command.print_line(f"{target}: to predict, {problem}")
    for name, kind in found.items():
        command.print_line(f"{name}: {kind}" + (f", {ignored[name]}" if name in ignored else ""))


if __name__ == "__main__":
    command.run(main, flags.PREPARE)
