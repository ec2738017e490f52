"""Exports a trained model for other programs: ``python -m <package>.export --model_dir=runs/baseline``."""

from collections.abc import Sequence
from pathlib import Path

from . import flags
from .engine import command
from .engine.system import startup
from .vocab import vocab

_SAMPLE = 64


def main(_: Sequence[str]) -> None:
    """Writes ``<model_dir>/export/<n>`` and prints its path."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    startup.import_tensorflow()
    from .engine import dataset as datasets
    from .engine import options
    from .engine.data import records
    from .engine.distribute import placement
    from .engine.examples import open_split
    from .engine.export import saved_model
    from .engine.run import restore
    from .train import make_model

    model_dir = flags.MODEL_DIR.value
    command.read_flags_of_run(model_dir)
    dataset = datasets.load(flags.DATA_DIR.value)
    # However many devices it was trained on, an export is for one: its graph names no device.
    placement.strategy(options.PlacementOptions(devices="cpu", precision=flags.PRECISION.value))
    train_split = open_split(dataset, "train", limit=flags.LIMIT_EXAMPLES.value)
    model = make_model(dataset, flags.train_steps(train_split.examples))
    restore.restore_run(
        model_dir,
        model,
        best=flags.CHECKPOINT.value == "best",
        averages=flags.AVERAGES.value,
        optimizer=True,
    )
    sample = open_split(dataset, "validation", limit=_SAMPLE)
    written = saved_model.write(
        Path(model_dir) / saved_model.FOLDER,
        model,
        records.specs(dataset.features),
        sample=sample.fetch(range(sample.examples))[vocab.x],
        classes=dataset.classes,
        about={
            "checkpoint": flags.CHECKPOINT.value,
            "averages": flags.AVERAGES.value,
            "data": dataset.fingerprint,
        },
    )
    command.print_line(str(written))


if __name__ == "__main__":
    command.run(main, flags.EXPORT)
