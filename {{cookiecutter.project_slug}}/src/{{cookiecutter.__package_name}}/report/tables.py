"""Metrics as tables, for a terminal or a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from ..vocab import vocab

_FORMAT = ".4f"


def of_classes(metrics: Mapping[str, Any], classes: Sequence[str], form: str = "simple") -> str:
    """Returns precision, recall and F1 of each class and their means; empty where there are no classes.

    Args:
        metrics: of a split, those of ``metrics.classification`` among them, or not.
        classes: their names.
        form: one of tabulate's: ``simple`` or ``html``.
    """
    if vocab.confusion not in metrics:
        return ""
    columns = [metrics[name] for name in (vocab.precision, vocab.recall, vocab.f1)]
    counts = [sum(row) for row in metrics[vocab.confusion]]
    rows = [list(row) for row in zip(classes, *columns, counts, strict=True)]
    means = [sum(column) / len(column) for column in columns]
    rows.append(["mean of the classes", *means, sum(counts)])
    header = ["class", vocab.precision, vocab.recall, vocab.f1, vocab.examples]
    return tabulate(rows, header, tablefmt=form, floatfmt=_FORMAT, disable_numparse=[0])


def of_runs(runs: Mapping[str, Mapping[str, Any]], form: str = "simple") -> str:
    """Returns the metrics that are one number each, a row for each run.

    Args:
        runs: metrics by the name of the run, or of the split.
        form: one of tabulate's: ``simple`` or ``html``.
    """
    names = dict.fromkeys(
        name
        for metrics in runs.values()
        for name, value in metrics.items()
        if isinstance(value, int | float)
    )
    rows = [[run, *(metrics.get(name) for name in names)] for run, metrics in runs.items()]
    return tabulate(
        rows, ["", *names], tablefmt=form, floatfmt=_FORMAT, disable_numparse=[0], missingval="-"
    )
