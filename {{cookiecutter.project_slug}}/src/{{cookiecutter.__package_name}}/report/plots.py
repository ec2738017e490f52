"""Plots of metrics and examples: PNG for files and TensorBoard, SVG for the report.

Matplotlib's ``Figure`` is used without ``pyplot``, so that nothing is kept open and no display is needed.
"""

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

Curve = Sequence[tuple[int, float]]
"""(step, value) in rising order of the steps."""

_LARGEST_WITH_COUNTS = 30  # classes: more, and the numbers would not fit into the cells


def confusion(counts: Any, classes: Sequence[str]) -> Figure:
    """Returns the confusion matrix, each row coloured by the shares of its true class.

    Args:
        counts: ``[true class, predicted class]``.
        classes: their names.
    """
    matrix = np.asarray(counts)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    size = min(4 + 0.35 * len(classes), 20)
    figure = Figure(figsize=(size, size), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set(xlabel="predicted class", ylabel="true class")
    ticks = range(len(classes))
    axes.set_xticks(ticks, classes, rotation=90 if max(map(len, classes)) > 2 else 0)
    axes.set_yticks(ticks, classes)
    if len(classes) <= _LARGEST_WITH_COUNTS:
        for (row, column), count in np.ndenumerate(matrix):
            if count:
                colour = "white" if shares[row, column] > 0.5 else "black"
                axes.text(column, row, str(count), ha="center", va="center", color=colour)
    return figure


def pictures(images: np.ndarray, titles: Sequence[str], columns: int = 4) -> Figure:
    """Returns images in a grid, each under its title.

    Args:
        images: ``[n, height, width, 1 or 3]``, uint8, or float in [0, 1].
        titles: ``n`` of them.
        columns: images in a row.
    """
    rows = math.ceil(len(images) / columns)
    figure = Figure(figsize=(2.2 * columns, 2.4 * rows), layout="constrained")
    for number, (image, title) in enumerate(zip(images, titles, strict=True), start=1):
        axes = figure.add_subplot(rows, columns, number)
        axes.imshow(
            image.squeeze(-1) if image.shape[-1] == 1 else image,
            cmap="gray",
            vmin=0,
            vmax=255 if image.dtype == np.uint8 else 1,
        )
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
    return figure


def curves(charts: Mapping[str, Mapping[str, Curve]]) -> Figure:
    """Returns a chart for each tag, with a curve for each split in it.

    Args:
        charts: by tag, then by split.
    """
    columns = min(3, len(charts))
    rows = math.ceil(len(charts) / columns)
    figure = Figure(figsize=(4.2 * columns, 2.8 * rows), layout="constrained")
    for number, (tag, by_split) in enumerate(charts.items(), start=1):
        axes = figure.add_subplot(rows, columns, number)
        for split, curve in by_split.items():
            axes.plot(*np.transpose(curve), label=split, marker="." if len(curve) == 1 else None)
        axes.set_title(tag)
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def to_png(figure: Figure) -> bytes:
    """Returns the figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()


def to_svg(figure: Figure) -> str:
    """Returns the figure as an SVG element, for a page of HTML."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]
