"""Paired measurements: things take turns, and the medians of the ratios within each round are what counts.

Machines are noisy: what one thing took says little. What it took beside another, within seconds, says more, and the
spread of many such ratios tells how much.
"""

import dataclasses
import itertools
import json
import os
import platform
import random
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROUNDS = 9
MOST_SECONDS = 600.0
_RESAMPLES = 10_000
_VERSIONS = ("cookiecutter", "keras", "tensorflow")


@dataclasses.dataclass(frozen=True)
class Bar:
    """What a ratio has to reach."""

    limit: float
    at_most: bool = False

    def __str__(self) -> str:
        """Return it as it stands in a table."""
        return f"{'≤' if self.at_most else '≥'} {self.limit:g}"

    def verdict(self, low: float, high: float) -> str:
        """Return whether it is met by all of an interval, by none of it, or undecided."""
        if low < self.limit < high:
            return "undecided"
        return "met" if (high <= self.limit if self.at_most else low >= self.limit) else "missed"


@dataclasses.dataclass(frozen=True)
class Row:
    """Ours against theirs, round by round: rates, or durations, in the same unit."""

    name: str
    ours: Sequence[float]
    theirs: Sequence[float]
    unit: str
    bar: Bar | None = None

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs in each round."""
        return [our / their for our, their in zip(self.ours, self.theirs, strict=True)]

    @property
    def interval(self) -> tuple[float, float]:
        """The bootstrap 95 % interval of the median ratio (Efron, 1979)."""
        draw, ratios = random.Random(0), self.ratios
        medians = sorted(
            statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES)
        )
        return medians[round(0.025 * _RESAMPLES)], medians[round(0.975 * _RESAMPLES) - 1]

    @property
    def verdict(self) -> str:
        """Whether the bar is met; empty without one."""
        return self.bar.verdict(*self.interval) if self.bar else ""

    def cells(self) -> dict[str, Any]:
        """Return the row as it is printed and written."""
        low, high = self.interval
        return {
            "": self.name,
            "ours": f"{statistics.median(self.ours):.4g} {self.unit}",
            "theirs": f"{statistics.median(self.theirs):.4g} {self.unit}",
            "ratio": f"{statistics.median(self.ratios):.3f}",
            "95 %": f"{low:.3f} to {high:.3f}",
            "rounds": str(len(self.ours)),
            "bar": str(self.bar or ""),
            "verdict": self.verdict,
        }


Pair = tuple[str, str, str, Bar | None]
"""Name of a row, the contenders that it compares, and its bar."""


def take_turns(
    contenders: Mapping[str, Callable[[], float]],
    pairs: Sequence[Pair],
    *,
    unit: str,
    clock: Callable[[], float] = time.monotonic,
) -> list[Row]:
    """Measure all contenders in each round, in an order that turns around, until the bars are decided.

    Args:
        contenders: each returns a rate or a duration whenever it is called.
        pairs: the rows to make of them.
        unit: of what they return.
        clock: returns seconds; after `MOST_SECONDS`, what is undecided stays so.
    """
    names = list(contenders)
    taken: dict[str, list[float]] = {name: [] for name in names}
    began = clock()
    while True:
        for _ in range(ROUNDS):
            for name in names:
                taken[name].append(contenders[name]())
            names.reverse()
        rows = [Row(name, taken[a], taken[b], unit, bar) for name, a, b, bar in pairs]
        if clock() - began > MOST_SECONDS or "undecided" not in {row.verdict for row in rows}:
            return rows


def in_turn(contenders: Sequence[Callable[[], float]]) -> Callable[[], float]:
    """Return a contender that is another of these each time: two of the same kind differ for as long as they live.

    TensorFlow decides for each compiled function, and by what its first runs took, which operations get a thread: the
    same step, compiled eight times, once took 227 to 263 ms for a hundred.
    """
    turns = itertools.cycle(contenders)
    return lambda: next(turns)()


def report(rows: Sequence[Row], output: Path | None) -> None:
    """Print rows, and write them for `run.py`."""
    print(table([row.cells() for row in rows]), flush=True)
    if output:
        write(rows, output)


def write(rows: Sequence[Row], output: Path) -> None:
    """Write rows, with what they were measured on."""
    written = {"machine": machine(), "rows": [dataclasses.asdict(row) for row in rows]}
    output.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[str, list[Row]]:
    """Return what `write` wrote: the machine and the rows."""
    written = json.loads(path.read_text(encoding="utf-8"))
    rows = [Row(**{**row, "bar": row["bar"] and Bar(**row["bar"])}) for row in written["rows"]]
    return written["machine"], rows


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return rows as a table in Markdown, without the columns that are empty."""
    columns = [column for column in rows[0] if any(row[column] for row in rows)]
    lines = [columns, ["---"] * len(columns), *([row[c] for c in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine() -> str:
    """Return what the figures were measured on, under Linux."""
    described = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cpu = described[1] if described else platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        f"{len(os.sched_getaffinity(0))} cores ({cpu})",
        f"{memory:.0f} GiB",
        f"{platform.system()}, Python {platform.python_version()}",
        *(f"{d.name} {d.version}" for d in metadata.distributions() if d.name in _VERSIONS),
    ]
    return ", ".join(parts)
