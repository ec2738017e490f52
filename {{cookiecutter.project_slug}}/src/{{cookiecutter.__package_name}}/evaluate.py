"""Evaluates a trained model: ``python -m <package>.evaluate --model_dir=runs/baseline --split=test``."""

from collections.abc import Sequence
from pathlib import Path

from . import flags
from .engine import command
from .vocab import vocab


def main(_: Sequence[str]) -> None:
    """Evaluates, writes ``evaluation-<split>.json`` into the run and prints the figures."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    from .engine import batches, placement, saver, steps
    from .engine import dataset as datasets
    from .engine.files import to_json, write_text
    from .model import Model

    model_dir, split = flags.MODEL_DIR.value, flags.SPLIT.value
    command.read_flags_of_run(model_dir)
    dataset = datasets.load(flags.DATA_DIR.value)
    strategy = placement.strategy(flags.placement_options())
    with strategy.scope():
        model = Model.for_dataset(dataset)
        saver.restore_run(model_dir, model, best=flags.CHECKPOINT.value == "best")
    evaluation = batches.evaluation(
        batches.open_split(dataset, split), strategy, batch_size=flags.BATCH_SIZE.value
    )
    result = {
        "split": split,
        vocab.global_step: int(model.optimizer.iterations.numpy()),
        **steps.make_evaluate(model, strategy)(evaluation),
    }
    write_text(Path(model_dir) / f"evaluation-{split}.json", to_json(result, indent=2) + "\n")
    command.print_result(result)


if __name__ == "__main__":
    command.run(main, flags.EVALUATE)
