"""What ``predict`` is given: rows of CSV files. Yours to edit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .columns import input_name, to_number
from .engine.errors import UserError
from .engine.examples import Inputs
from .engine.paths import expand
from .sources import Table, read_csv


def open_inputs(patterns: Sequence[str], expected: Mapping[str, Mapping[str, Any]]) -> Inputs:
    """Opens CSV files; they have the columns that the model was trained on, and may have others.

    Args:
        patterns: what ``--input`` was given.
        expected: the model's inputs by name: ``{"age": {"dtype": "float32", "shape": [None]}, ...}``.

    Raises:
        UserError: a file is no table or lacks a column, or the model does not take rows.
    """
    if any(len(spec["shape"]) != 1 for spec in expected.values()):
        raise UserError(f"the model is of another project: it takes {dict(expected)}, not rows")
    tables = [read_csv(str(path)) for path in expand("--input", patterns, (".csv",))]
    found = [_columns(table, expected) for table in tables]
    places = [(i, row) for i, table in enumerate(tables) for row in range(len(table.rows))]

    def read(number: int) -> dict[str, np.ndarray]:
        i, row = places[number]
        return {
            name: np.asarray(tables[i].rows[row][tables[i].header.index(column)], object)
            if expected[name]["dtype"] == "string"
            else np.asarray(to_number(tables[i], row, column))
            for name, column in found[i].items()
        }

    return Inputs([f"{tables[i].path}:{tables[i].lines[row]}" for i, row in places], read)


def _columns(table: Table, expected: Mapping[str, Any]) -> dict[str, str]:
    """Returns the column of each input of the model."""
    columns = {input_name(name): name for name in table.header}
    for name in expected:
        if name not in columns:
            listed = ", ".join(repr(column) for column in table.header)
            raise UserError(
                f"{table.path}: line 1: has no column for the model's input {name!r}, only {listed}"
            )
    return {name: columns[name] for name in expected}
