"""Evaluates a trained model: ``python -m <package>.evaluate --model_dir=runs/baseline --split=test``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import flags
from .engine import command
from .engine.errors import UserError
from .engine.system import startup
from .vocab import vocab

if TYPE_CHECKING:
    from .engine.report.mistakes import HighestLoss


def main(_: Sequence[str]) -> None:
    """Evaluates, writes metrics, pictures and the report into the run, and prints the metrics."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    startup.import_tensorflow()
    from .engine import batches
    from .engine import dataset as datasets
    from .engine.distribute import placement
    from .engine.examples import open_split
    from .engine.report import mistakes, page, tables
    from .engine.run import evaluation, restore, variables
    from .engine.system.files import to_json, write_text
    from .model import Model

    model_dir, split = flags.MODEL_DIR.value, flags.SPLIT.value
    run, batch_size = Path(model_dir), flags.BATCH_SIZE.value
    command.read_flags_of_run(model_dir)
    others = {other: _evaluated(Path(other), split) for other in flags.COMPARE.value}
    dataset = datasets.load(flags.DATA_DIR.value)
    strategy = placement.strategy(flags.placement_options())
    with strategy.scope():
        model = Model.for_dataset(dataset)
        restore.restore_run(model_dir, model, best=flags.CHECKPOINT.value == "best")
    examples = open_split(dataset, split)
    metrics = evaluation.make_evaluate(model, strategy)(
        batches.evaluation(examples, strategy, batch_size=batch_size)
    )
    step = int(variables.global_step_of(model).numpy())
    result = {"split": split, vocab.global_step: step, **metrics}
    write_text(page.evaluation_file(run, split), to_json(result, indent=2) + "\n")
    found = mistakes.highest_loss(
        model, examples, batch_size=batch_size, classes=len(dataset.classes)
    )
    _write_pictures(run, split, result, found, dataset.classes)
    page.write(run, dataset.classes)
    if by_class := tables.of_classes(result, dataset.classes):
        command.print_line(f"{by_class}\n")
    command.print_line(tables.of_runs({model_dir: result, **others}) + "\n")
    command.print_result(result)


def _evaluated(run: Path, split: str) -> dict[str, Any]:
    """Returns what was written when another run was evaluated."""
    from .engine.report import page

    path = page.evaluation_file(run, split)
    try:
        metrics: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserError(
            f"--compare={run}: no metrics of the split {split!r} there; first evaluate it with "
            f"--model_dir={run} --split={split}"
        ) from None
    return metrics


def _write_pictures(
    run: Path,
    split: str,
    result: Mapping[str, Any],
    found: HighestLoss,
    classes: Sequence[str],
) -> None:
    """Writes the confusion matrix and the examples with the highest loss, as files and for TensorBoard."""
    from .engine import summaries
    from .engine.report import page, plots
    from .engine.system.files import write

    drawn = {}
    if vocab.confusion in result:
        drawn[vocab.confusion] = plots.confusion(result[vocab.confusion], classes)
    x = found.examples.get(vocab.x)
    if x is not None and summaries.are_images(x):
        drawn[vocab.mistakes] = plots.pictures(x, found.titles(classes))
    pictures = {name: plots.to_png(figure) for name, figure in drawn.items()}
    for name in (vocab.confusion, vocab.mistakes):
        path = page.picture_file(run, name, split)
        if name in pictures:
            write(path, pictures[name])
        else:
            path.unlink(missing_ok=True)  # of an earlier evaluation
    summaries.write_pictures(run / split, pictures, result[vocab.global_step])


if __name__ == "__main__":
    command.run(main, flags.EVALUATE)
