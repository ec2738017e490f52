"""The arithmetic of the benchmarks: paired ratios, their interval, and when a bar is decided."""

import itertools
import math
import random
import statistics
from pathlib import Path

import pytest
from measuring import MOST_SECONDS, ROUNDS, Bar, Row, read, report, take_turns


def test_a_ratio_is_the_median_of_the_ratios_within_the_rounds() -> None:
    row = Row("ours: theirs", ours=[2.0, 8.0, 3.0], theirs=[1.0, 2.0, 3.0], unit="s")
    assert row.ratios == [2.0, 4.0, 1.0]
    assert row.cells()["ratio"] == "2.000"
    assert row.cells()["ours"] == "3 s"
    assert row.verdict == ""


def test_the_interval_is_near_the_exact_one() -> None:
    """That the median of n draws is at most the k-th value has the chance of (n + 1) / 2 draws among the first k."""
    n = 27

    def chance(k: int) -> float:
        draws = range((n + 1) // 2, n + 1)
        return sum(math.comb(n, i) * (k / n) ** i * (1 - k / n) ** (n - i) for i in draws)

    low, high = (next(k for k in range(n + 1) if chance(k) >= p) for p in (0.025, 0.975))
    ratios = [float(k) for k in range(1, n + 1)]
    random.Random(3).shuffle(ratios)
    found = Row("", ratios, [1.0] * n, "").interval
    assert found == pytest.approx((low, high), abs=1)
    assert 5 < low < high < 23


@pytest.mark.parametrize(
    ("bar", "verdict"),
    [
        (Bar(0.8), "met"),
        (Bar(0.95), "undecided"),
        (Bar(1.2), "missed"),
        (Bar(0.8, at_most=True), "missed"),
        (Bar(0.95, at_most=True), "undecided"),
        (Bar(1.2, at_most=True), "met"),
    ],
)
def test_a_bar_is_decided_when_the_whole_interval_is_on_one_side(bar: Bar, verdict: str) -> None:
    assert bar.verdict(0.9, 1.1) == verdict


def test_contenders_take_turns_in_an_order_that_turns_around() -> None:
    calls: list[str] = []

    def contender(name: str, value: float) -> float:
        calls.append(name)
        return value

    contenders = {
        "ours": lambda: contender("ours", 2.0),
        "theirs": lambda: contender("theirs", 1.0),
    }
    [row] = take_turns(contenders, [("both", "ours", "theirs", Bar(1.5))], unit="s")
    assert calls[:4] == ["ours", "theirs", "theirs", "ours"]
    assert len(row.ours) == ROUNDS == 9
    assert row.verdict == "met"


def test_rounds_are_added_while_a_bar_is_undecided() -> None:
    values = itertools.cycle([0.5, 1.5])
    times = itertools.count(step=MOST_SECONDS / 2)
    contenders = {"ours": lambda: next(values), "theirs": lambda: 1.0}
    pairs = [("both", "ours", "theirs", Bar(1.0))]
    [row] = take_turns(contenders, pairs, unit="s", clock=lambda: next(times))
    assert len(row.ours) == 3 * ROUNDS
    assert row.verdict == "undecided"


def test_what_is_written_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row("a", [1.0, 2.0], [2.0, 2.0], "s", Bar(0.5)), Row("b", [1.0], [1.0], "s")]
    report(rows, tmp_path / "rows.json")
    machine, found = read(tmp_path / "rows.json")
    assert found == rows
    assert "cores" in machine
    assert f"{statistics.median([0.5, 1.0]):.3f}" in capsys.readouterr().out
