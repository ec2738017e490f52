"""What each column of a table is, and what the model has to know of it. Yours to edit.

Everything here is found once, by ``prepare``, and written to ``dataset.json``: the model's preprocessing layers are
built from these constants (``preprocessing.py``), so that an export takes the raw cells.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .engine import dataset
from .engine.errors import UserError
from .sources import Table
from .vocab import vocab

NUMBER, BUCKETS, CATEGORY, IGNORE = KINDS = ("number", "buckets", "category", "ignore")
"""A number that is standardised; a number of which only counts in which of ten ranges it lies; one of some texts."""

MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?", "-"))
"""What stands in a column of numbers, in any case, where one is missing; a text is missing when it is empty."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOSTLY = 0.9  # of the cells are numbers: the others are taken for mistakes
_BUCKETS = 10
_LARGEST_VOCABULARY = 1_000
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Column:
    """One column that the model takes."""

    name: str
    """As the first line of the file has it."""

    input: str
    """What it is called as an input of the model."""

    kind: str

    mean: float = 0.0
    """Of the numbers of the training split; likewise the standard deviation."""

    stddev: float = 1.0

    has_missing: bool = False
    """Whether numbers are missing in the training split."""

    boundaries: tuple[float, ...] = ()
    """Of ranges that hold as many numbers of the training split each."""

    vocabulary: tuple[str, ...] = ()
    """Texts that the training split holds more than once, the most frequent first."""

    @property
    def is_text(self) -> bool:
        """Whether the model takes it as text."""
        return self.kind == CATEGORY

    @property
    def feature(self) -> str:
        """Name of the record's feature that holds it."""
        return dataset.column_feature(self.input)

    def to_feature(self) -> dataset.Feature:
        """Returns that feature."""
        return dataset.Feature("string" if self.is_text else "float32", ())


def open_columns(table: Table, kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Returns the values of each column that is not ignored, by its name: float32, or texts.

    Raises:
        UserError: see ``numbers``.
    """
    return {
        name: np.array(table.column(name), object) if kind == CATEGORY else numbers(table, name)
        for name, kind in kinds.items()
        if kind != IGNORE
    }


def from_statistics(statistics: Mapping[str, Any]) -> list[Column]:
    """Returns the columns that ``dataset.json`` describes."""
    columns = []
    for described in statistics["columns"]:
        values: dict[str, Any] = dict(described)
        values["boundaries"] = tuple(values["boundaries"])
        values["vocabulary"] = tuple(values["vocabulary"])
        columns.append(Column(**values))
    return columns


def find_kinds(
    table: Table, target: str, given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the kind of each column but the target, and why those that nobody asked to ignore are.

    Args:
        table: to look at.
        target: the column to predict.
        given: kinds by column that are to be taken instead of what is found.

    Raises:
        UserError: a kind was given that there is not, or to no column; a column is neither numbers nor texts;
            nothing is left to predict from.
    """
    for name, kind in given.items():
        if name not in table.header or name == target:
            what = "is the target" if name == target else f"{table.path} has no such column"
            raise UserError(f"--columns={name}={kind}: {what}; {_listed(table.header, target)}")
        if kind not in KINDS:
            raise UserError(f"--columns={name}={kind}: is none of {', '.join(KINDS)}")
    kinds: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name in table.header:
        if name == target:
            continue
        if name in given:
            kinds[name] = given[name]
        else:
            kinds[name], reason = _kind(table, name)
            if reason:
                reasons[name] = reason
    names: dict[str, str] = {}
    for name, kind in kinds.items():
        other = names.setdefault(input_name(name), name)
        if other != name and IGNORE not in (kind, kinds[other]):
            raise UserError(
                f"{table.path}: line 1, column {name!r}: is too like {other!r}, both would be the input "
                f"{input_name(name)!r} of the model; rename one, or say --columns='{name}={IGNORE}'"
            )
    if all(kind == IGNORE for kind in kinds.values()):
        raise UserError(
            f"{table.path}: line 1: no column is left to predict {target!r} from: "
            f"{', '.join(f'{k!r} {v}' for k, v in reasons.items()) or 'all are ignored'}"
        )
    return kinds, reasons


def _kind(table: Table, name: str) -> tuple[str, str]:
    cells = table.column(name)
    if len(set(cells)) == 1:
        return IGNORE, "is the same in every row"
    present = [i for i, cell in enumerate(cells) if cell.strip().lower() not in MISSING]
    odd = [i for i in present if not is_number(cells[i])]
    if not present:
        return IGNORE, "is missing in every row"
    if not odd:
        return NUMBER, ""
    if len(odd) <= (1 - _MOSTLY) * len(present):
        raise UserError(
            f"{table.place(odd[0], name)}: {_shown(cells[odd[0]])} is no number, and nearly all others "
            f"are; correct it, or say --columns='{name}={CATEGORY}'"
        )
    if max(Counter(cells).values()) == 1:
        return IGNORE, "is a text that differs in every row"
    return CATEGORY, ""


def is_number(cell: str) -> bool:
    """Says whether a cell is written like a number."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def numbers(table: Table, name: str, *, required: bool = False) -> np.ndarray:
    """Returns a column as numbers, ``[rows] float32``, not a number where one is missing.

    Args:
        table: to take it from.
        name: of the column.
        required: whether a missing one is an error.

    Raises:
        UserError: a cell is no number, or none that a float32 can hold.
    """
    rows = range(len(table.rows))
    return np.array([to_number(table, row, name, required=required) for row in rows], np.float32)


def to_number(table: Table, row: int, name: str, *, required: bool = False) -> np.float32:
    """Returns one cell as ``numbers`` does."""
    cell = table.rows[row][table.header.index(name)]
    text = cell.strip()
    if text.lower() in MISSING and not required:
        return np.float32("nan")
    if not is_number(text) or abs(float(text)) > _LARGEST_FLOAT:
        problem = "there is no number" if not text else f"{_shown(cell)} is no finite number"
        raise UserError(f"{table.place(row, name)}: {problem}; correct the cell or remove the row")
    return np.float32(text)


def describe_all(kinds: Mapping[str, str], values: Mapping[str, np.ndarray]) -> list[Column]:
    """Returns the columns with what the model has to know of them.

    Args:
        kinds: by the name of the column.
        values: likewise, of the training split, ``[rows]``: float32, or texts.
    """
    return [_describe(name, kind, values[name]) for name, kind in kinds.items()]


def _describe(name: str, kind: str, values: np.ndarray) -> Column:
    called = input_name(name)
    if kind == CATEGORY:
        return Column(name, called, kind, vocabulary=_vocabulary(values.tolist()))
    present = values[~np.isnan(values)].astype(np.float64)
    has_missing = len(present) < len(values)
    if not len(present):
        present = np.zeros(1)
    if kind == BUCKETS:
        quantiles = np.quantile(present, np.linspace(0, 1, _BUCKETS + 1)[1:-1])
        boundaries = tuple(sorted({float(np.float32(quantile)) for quantile in quantiles}))
        return Column(name, called, kind, has_missing=has_missing, boundaries=boundaries)
    stddev = float(present.std()) or 1.0
    return Column(
        name, called, kind, has_missing=has_missing, mean=float(present.mean()), stddev=stddev
    )


def _vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the texts to tell apart; those seen once train what stands for any other text."""
    counts = sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0]))
    repeated = [text for text, count in counts if count > 1]
    return tuple((repeated or [text for text, _ in counts])[:_LARGEST_VOCABULARY])


def input_name(name: str) -> str:
    """Returns the name that a column has as an input of the model, in a graph and for a server.

    TensorFlow wants ASCII letters, digits and underscores there, and names of the vocabulary mean something else.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    plain = re.sub(r"[^a-z0-9]+", "_", plain).strip("_") or f"{zlib.crc32(name.encode())}"
    return plain if plain[0].isalpha() and plain not in vocab else f"column_{plain}"


def _listed(header: Sequence[str], target: str) -> str:
    return f"there are {', '.join(repr(name) for name in header if name != target)}"


def _shown(cell: str, longest: int = 40) -> str:
    return repr(cell if len(cell) <= longest else f"{cell[:longest]}...")
