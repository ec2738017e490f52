"""What a table's target column is, and what the model has to know of it. Yours to edit."""

from collections import Counter
from typing import Any

import numpy as np

from .columns import is_number, numbers
from .engine import dataset
from .engine.errors import UserError
from .sources import Table

CLASSIFICATION, REGRESSION = "classification", "regression"
_MOST_NUMBERED_CLASSES = 20
_FEWEST = len(dataset.SPLITS)


def find_problem(table: Table, target: str) -> str:
    """Returns ``regression`` for a column of numbers with decimals, or of many values, else ``classification``."""
    cells = table.column(target)
    if not all(map(is_number, cells)):
        return CLASSIFICATION
    values = set(map(float, cells))
    are_few = len(values) <= _MOST_NUMBERED_CLASSES
    return CLASSIFICATION if are_few and all(v.is_integer() for v in values) else REGRESSION


def read_labels(table: Table, target: str, problem: str) -> tuple[np.ndarray, list[str]]:
    """Returns what to predict, ``[rows]`` float32, or int64 and the names of the classes.

    Raises:
        UserError: a cell has nothing to predict, or there is too little of something to learn from.
    """
    cells = [cell.strip() for cell in table.column(target)]
    if len(cells) < _FEWEST:
        raise UserError(
            f"{table.place(len(cells) - 1, target)}: the table ends after {len(cells)} row(s); it needs "
            f"at least {_FEWEST}, one for each split"
        )
    if len(set(cells)) == 1:
        raise UserError(
            f"{table.place(0, target)}: every row has {cells[0]!r}, so there is nothing to learn; choose "
            "another --target"
        )
    if problem == REGRESSION:
        return numbers(table, target, required=True), []
    for row, cell in enumerate(cells):
        if not cell or not cell.isprintable():
            found = f"{cell!r} is not one line of plain text" if cell else "there is no class"
            raise UserError(
                f"{table.place(row, target)}: {found}; correct the cell or remove the row"
            )
    counts = Counter(cells)
    rarest, count = counts.most_common()[-1]
    if count < _FEWEST:
        raise UserError(
            f"{table.place(cells.index(rarest), target)}: the class {rarest!r} has {count} row(s), but "
            f"needs at least {_FEWEST}, one for each split; add some or remove them, or, if it is a "
            f"number, say --problem={REGRESSION}"
        )
    classes = sorted(counts, key=float if all(map(is_number, counts)) else str)
    labels = {name: label for label, name in enumerate(classes)}
    return np.array([labels[cell] for cell in cells], np.int64), classes


def describe(labels: np.ndarray, classes: int) -> dict[str, Any]:
    """Returns the weight of each class, with which all count alike, or the mean and deviation of a number.

    Args:
        labels: of the training split.
        classes: how many there are; 0 for a number.
    """
    if classes:
        counts = np.bincount(labels, minlength=classes)
        return {"class_weights": (len(labels) / (classes * counts)).tolist()}
    exact = labels.astype(np.float64)
    return {"mean": float(exact.mean()), "stddev": float(exact.std()) or 1.0}
