"""Where the rows come from. Yours to edit: a new source is one more function that returns a ``Table``."""

import csv
import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .engine.errors import UserError

IRIS = "iris"
IRIS_TARGET = "species"


@dataclass(frozen=True)
class Table:
    """Rows of text, all in memory.

    Attributes:
        name: of the source, for ``dataset.json``; without the path, so that it is the same on every machine.
        path: of the source, for messages.
        header: names of the columns, all different.
        rows: as many cells as the header has, each as it stands in the file.
        lines: the line of the file on which each row begins, counted from 1.
    """

    name: str
    path: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        """Returns the cells of a column."""
        position = self.header.index(name)
        return [row[position] for row in self.rows]

    def place(self, row: int, name: str) -> str:
        """Returns where a cell stands, to begin a message with."""
        return f"{self.path}: line {self.lines[row]}, column {name!r}"


def open_table(source: str) -> Table:
    """Opens a source.

    Args:
        source: ``iris`` or the path of a CSV file.

    Raises:
        UserError: the file cannot be read, or is no table.
    """
    return iris() if source == IRIS else read_csv(source)


def iris() -> Table:
    """The 150 flowers that come with scikit-learn, their species as the last column.

    https://archive.ics.uci.edu/dataset/53/iris
    """
    from sklearn.datasets import load_iris

    bundled = load_iris()
    species = bundled.target_names[bundled.target]
    rows = [
        [*map(str, row), str(name)]
        for row, name in zip(bundled.data.tolist(), species, strict=True)
    ]
    lines = list(range(2, len(rows) + 2))
    return Table(IRIS, IRIS, [*bundled.feature_names, IRIS_TARGET], rows, lines)


def read_csv(path: str) -> Table:
    """Reads a CSV file (RFC 4180): UTF-8, commas, the names of the columns in the first line.

    Quoted cells may hold commas, quotes and line breaks; a byte-order mark and empty lines are passed over.

    Raises:
        UserError: it cannot be read, is not UTF-8, has no rows, rows with more or fewer cells than columns, or
            columns without a name or with the same.
    """
    records = _records(path, _decode(path, _contents(path)))
    _, header = next(records, (1, []))
    if not header:
        raise UserError(f"{path}: line 1: is empty; it must name the columns, separated by commas")
    header = [name.strip() for name in header]
    _check_header(path, header)
    rows, lines = [], []
    for line, row in records:
        if len(row) != len(header):
            column = header[min(len(row), len(header)) - 1]
            raise UserError(
                f"{path}: line {line}, column {column!r}: the row ends after {len(row)} cells, the "
                f"header has {len(header)} columns; add or remove commas, or quote cells that hold them"
                if len(row) < len(header)
                else f"{path}: line {line}, column {column!r}: the row goes on to {len(row)} cells, the "
                f"header has {len(header)} columns; quote cells that hold commas"
            )
        rows.append(row)
        lines.append(line)
    if not rows:
        raise UserError(
            f"{path}: line 2: there are no rows below the names of the columns "
            f"({header[0]!r}, ...); add some"
        )
    return Table(Path(path).name, path, header, rows, lines)


def _contents(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        problem = "no such file"
    except IsADirectoryError:
        problem = "is a folder"
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    raise UserError(f"--source={path}: {problem}; name a CSV file, or `{IRIS}`")


def _decode(path: str, contents: bytes) -> str:
    """Returns the text of a file in UTF-8, with or without a byte-order mark."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = contents[: error.start]
        line = before.count(b"\n") + 1
        start_of_line = before.rpartition(b"\n")[2].decode("utf-8-sig", "replace")
        cells = next(csv.reader([start_of_line]), [""])
        raise UserError(
            f"{path}: line {line}, column {max(1, len(cells))}: is not UTF-8 (byte 0x{contents[error.start]:02x}); "
            f"convert the file, if it came from Windows: iconv -f cp1252 -t utf-8 {path}"
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise UserError(
            f"{path}: line {line}: holds a zero byte, so it is no text; export it as CSV"
        )
    return text


def _records(path: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the line on which each record begins, and its cells."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"{path}: line {line}: {error}; quotes inside of a quoted cell are doubled"
            ) from None
        if record:
            yield line, record


def _check_header(path: str, header: list[str]) -> None:
    if len(header) == 1:
        other = next((name for name in (";", "\t", "|") if name in header[0]), "")
        found = f"columns are separated by commas, not {other!r}" if other else "a second is needed"
        raise UserError(f"{path}: line 1, column 1: is the only column, {header[0]!r}; {found}")
    for position, name in enumerate(header, start=1):
        if not name:
            raise UserError(f"{path}: line 1, column {position}: has no name; give it one")
        if not name.isprintable():
            raise UserError(
                f"{path}: line 1, column {position}: the name {name!r} is not one line of plain text; "
                "rename it"
            )
    for (i, first), (j, second) in itertools.combinations(enumerate(header, start=1), 2):
        if first == second:
            raise UserError(
                f"{path}: line 1, column {j}: is called {second!r} like column {i}; rename one of them"
            )
