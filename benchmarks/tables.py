"""Writes results.md and results.png from what the benchmarks left in results/; part of run.py."""

import ast
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from measuring import Row, read, table

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
HEAD = """\
# Results

Written by `uv run python benchmarks/run.py`. Each row compares two things that took turns: its ratio is the median of
the ratios within the rounds, with a bootstrap 95 % interval. A bar that the interval straddles is undecided.

![The ratios of training throughput](results.png)

"""
KILLED = """\
## Killed at random moments, resumed, compared bit for bit

The default project, dropout and augmentation on, 2,000 steps, a checkpoint every 5, an evaluation every 50. Each run is
killed three times with SIGKILL: 40 % of the kills wait for the next save to begin, the others fall where they fall.
Compared: all weights, optimizer state and metrics of the last checkpoint and of the best ones, and every value of every
curve but the throughput and the waits for input. It takes hours, and so `run.py` leaves it out:
`python3 benchmarks/kill_and_resume.py`.

"""


def section(path: Path) -> str:
    """Return the section of one benchmark."""
    machine, rows = read(path)
    name = path.stem
    text = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8")))
    title, _, rest = (text or "").partition("\n\n")
    cells = table([row.cells() for row in rows])
    measured = f"`benchmarks/run.py {name}` on {machine}:"
    parts = (f"## {title.rstrip('.')}", rest.rstrip(), measured, cells)
    return "\n\n".join(filter(None, parts)) + "\n\n"


def killed() -> str:
    """Return the section on kill_and_resume, which keeps its logs."""
    logs = sorted(FOLDER.glob("kill_and_resume-*.log"))
    lines = [f"- [{p.name}]({p.name}): {p.read_text().splitlines()[-1]}" for p in logs]
    return KILLED + "\n".join(lines) + "\n"


def plot(rows: list[Row], path: Path) -> None:
    """Draw the ratio of each row with its interval and its bar."""
    figure, axes = plt.subplots(figsize=(9, 0.28 * len(rows) + 1))
    for place, row in enumerate(reversed(rows)):
        low, high = row.interval
        axes.plot([low, high], [place, place], color="tab:blue")
        axes.plot(statistics.median(row.ratios), place, "o", color="tab:blue")
        if row.bar:
            axes.plot(row.bar.limit, place, "|", color="tab:red", markersize=12)
    axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    axes.axvline(1, color="lightgray", zorder=0)
    axes.set_xscale("log")
    axes.set_xlabel("throughput over that of what is named; red: the bar")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Write both."""
    paths = sorted(RESULTS.glob("*.json"))
    text = HEAD + "".join(map(section, paths)) + killed()
    (FOLDER / "results.md").write_text(text, encoding="utf-8")
    if (RESULTS / "training.json").exists():
        plot(read(RESULTS / "training.json")[1], FOLDER / "results.png")


if __name__ == "__main__":
    main()
