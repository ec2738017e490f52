"""``report.html``: a run on one page, which needs no other file, no network and no TensorBoard."""

import base64
import html
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..engine.command import FLAGS_FILE
from ..engine.dataset import SPLITS
from ..engine.run import events
from ..engine.run.manifest import FILE as MANIFEST
from ..engine.system.files import write_text
from ..vocab import vocab
from . import plots, tables

FILE = "report.html"
_CHARTS = (
    vocab.loss,
    vocab.error,
    vocab.learning_rate,
    vocab.gradient_norm,
    vocab.examples_per_second,
    vocab.input_wait,
)
_PICTURES = {
    vocab.confusion: "Confusion matrix",
    vocab.mistakes: "Examples with the highest loss",
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd }
svg, img { max-width: 100%; height: auto } pre { background: #f6f6f6; padding: 1em; overflow: auto }
"""


def evaluation_file(run: Path, split: str) -> Path:
    """Returns where ``evaluate`` writes the metrics of a split."""
    return run / f"evaluation-{split}.json"


def picture_file(run: Path, name: str, split: str) -> Path:
    """Returns where ``evaluate`` puts a picture: ``confusion`` or ``mistakes``."""
    return run / f"{name}-{split}.png"


def write(run: Path, classes: list[str]) -> Path:
    """Writes ``report.html`` into the folder of a run, from what is there, and returns its path."""
    title = html.escape(run.resolve().name)
    body = [f"<h1>{title}</h1>", *_metrics(run, classes), *_curves(run), *_texts(run)]
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )
    write_text(run / FILE, page)
    return run / FILE


def _metrics(run: Path, classes: list[str]) -> Iterable[str]:
    evaluated: dict[str, dict[str, Any]] = {
        split: json.loads(evaluation_file(run, split).read_text(encoding="utf-8"))
        for split in SPLITS
        if evaluation_file(run, split).exists()
    }
    if evaluated:
        yield "<h2>Metrics</h2>" + tables.of_runs(evaluated, form="html")
    for split, metrics in evaluated.items():
        yield f"<h2>Split {split}</h2>" + tables.of_classes(metrics, classes, form="html")
        for name, title in _PICTURES.items():
            path = picture_file(run, name, split)
            if path.exists():
                data = base64.b64encode(path.read_bytes()).decode()
                yield f'<h3>{title}</h3><img alt="{title}" src="data:image/png;base64,{data}">'


def _curves(run: Path) -> Iterable[str]:
    splits = {split: events.scalars(run / split) for split in SPLITS}
    others = sorted({tag for curves in splits.values() for tag in curves if "/" not in tag})
    charts = {
        tag: {split: curves[tag] for split, curves in splits.items() if tag in curves}
        for tag in dict.fromkeys((*_CHARTS, *others))
    }
    charts = {tag: by_split for tag, by_split in charts.items() if by_split}
    if charts:
        yield "<h2>Curves</h2>" + plots.to_svg(plots.curves(charts))


def _texts(run: Path) -> Iterable[str]:
    for title, name in (("Flags", FLAGS_FILE), ("Manifest", MANIFEST)):
        if (run / name).exists():
            text = (run / name).read_text(encoding="utf-8", errors="replace")
            yield f"<h2>{title}</h2><pre>{html.escape(text)}</pre>"
