"""Evaluates a trained model: ``python -m <package>.evaluate --model_dir=runs/baseline --split=test``.

From Python: ``evaluate(model_dir="runs/baseline", split="test")["error"]``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import flags, run
from .engine import command
from .engine.errors import UserError
from .engine.system import startup
from .vocab import vocab

if TYPE_CHECKING:
    from .report.mistakes import HighestLoss


def main(_: Sequence[str]) -> None:
    """Evaluates, and prints the metrics as tables and as JSON."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    startup.import_tensorflow()
    from .report import tables

    others = {other: _metrics_of(Path(other)) for other in flags.COMPARE.value}
    opened, result = evaluate_with_flags()
    if by_class := tables.of_classes(result, opened.dataset.classes):
        command.print_line(f"{by_class}\n")
    command.print_line(tables.of_runs({flags.MODEL_DIR.value: result, **others}) + "\n")
    command.print_result(result)


def evaluate(**settings: Any) -> dict[str, Any]:
    """Evaluates a split, writes the metrics, pictures and the report into the run, and returns the metrics.

    Args:
        settings: named like the flags of this command, without ``compare``; what is not given is as in the run.

    Raises:
        UserError: what the command would end with.
    """
    known = [flag for flag in flags.EVALUATE if flag is not flags.COMPARE]
    with command.settings(known, settings):
        return evaluate_with_flags()[1]


def evaluate_with_flags() -> tuple[run.Run, dict[str, Any]]:
    """Evaluates as the flags say; returns the opened run and the metrics."""
    opened = run.open_with_flags()
    from .engine import batches
    from .engine.run.evaluation import make_evaluate
    from .engine.system.files import to_json, write_text
    from .report import mistakes, page

    split, batch_size, classes = flags.SPLIT.value, flags.BATCH_SIZE.value, opened.dataset.classes
    examples = opened.examples(split)
    metrics = make_evaluate(opened.model, opened.strategy)(
        batches.evaluation(examples, opened.strategy, batch_size=batch_size)
    )
    result = {"split": split, vocab.global_step: opened.step, **metrics}
    write_text(page.evaluation_file(opened.folder, split), to_json(result, indent=2) + "\n")
    found = mistakes.highest_loss(
        opened.model, examples, batch_size=batch_size, classes=len(classes)
    )
    _write_pictures(opened.folder, split, result, found, classes)
    page.write(opened.folder, classes)
    return opened, result


def _metrics_of(folder: Path) -> dict[str, Any]:
    """Returns what was written when another run was evaluated."""
    from .report import page

    split = flags.SPLIT.value
    try:
        written = page.evaluation_file(folder, split).read_text(encoding="utf-8")
        metrics: dict[str, Any] = json.loads(written)
    except (OSError, ValueError):
        raise UserError(
            f"--compare={folder}: no metrics of the split {split!r} there; first evaluate it with "
            f"--model_dir={folder} --split={split}"
        ) from None
    return metrics


def _write_pictures(
    folder: Path,
    split: str,
    result: Mapping[str, Any],
    found: HighestLoss,
    classes: Sequence[str],
) -> None:
    """Writes the confusion matrix and the examples with the highest loss, as files and for TensorBoard."""
    from .engine import summaries
    from .engine.system.files import write
    from .report import page, plots

    drawn = {}
    if vocab.confusion in result:
        drawn[vocab.confusion] = plots.confusion(result[vocab.confusion], classes)
    x = found.examples.get(vocab.x)
    if x is not None and summaries.are_images(x):
        drawn[vocab.mistakes] = plots.pictures(x, found.titles(classes))
    pictures = {name: plots.to_png(figure) for name, figure in drawn.items()}
    for name in (vocab.confusion, vocab.mistakes):
        path = page.picture_file(folder, name, split)
        if name in pictures:
            write(path, pictures[name])
        else:
            path.unlink(missing_ok=True)  # of an earlier evaluation
    summaries.write_pictures(folder / split, pictures, result[vocab.global_step])


if __name__ == "__main__":
    command.run(main, flags.EVALUATE)
