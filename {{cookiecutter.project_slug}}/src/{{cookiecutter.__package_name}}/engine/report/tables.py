"""Figures as tables, for a terminal or a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from ...vocab import vocab

_FORMAT = ".4f"


def of_classes(figures: Mapping[str, Any], classes: Sequence[str], form: str = "simple") -> str:
    """Returns precision, recall and F1 of each class and their means; empty where there are no classes.

    Args:
        figures: as ``metrics.classification_figures`` returns them.
        classes: their names.
        form: one of tabulate's: ``simple`` or ``html``.
    """
    if vocab.confusion not in figures:
        return ""
    columns = [figures[name] for name in (vocab.precision, vocab.recall, vocab.f1)]
    counts = [sum(row) for row in figures[vocab.confusion]]
    rows = [list(row) for row in zip(classes, *columns, counts, strict=True)]
    means = [sum(column) / len(column) for column in columns]
    rows.append(["mean of the classes", *means, sum(counts)])
    header = ["class", vocab.precision, vocab.recall, vocab.f1, vocab.examples]
    return tabulate(rows, header, tablefmt=form, floatfmt=_FORMAT, disable_numparse=[0])


def of_runs(runs: Mapping[str, Mapping[str, Any]], form: str = "simple") -> str:
    """Returns the figures that are one number each, a row for each run.

    Args:
        runs: figures by the name of the run, or of the split.
        form: one of tabulate's: ``simple`` or ``html``.
    """
    names = dict.fromkeys(
        name
        for figures in runs.values()
        for name, value in figures.items()
        if isinstance(value, int | float)
    )
    rows = [[run, *(figures.get(name) for name in names)] for run, figures in runs.items()]
    return tabulate(
        rows, ["", *names], tablefmt=form, floatfmt=_FORMAT, disable_numparse=[0], missingval="-"
    )
