"""Exports a trained model for other programs: ``python -m <package>.export --model_dir=runs/baseline``."""

from collections.abc import Sequence

from . import flags, run
from .engine import command, options
from .engine.system import startup
from .vocab import vocab

_SAMPLE = 64


def main(_: Sequence[str]) -> None:
    """Writes ``<model_dir>/export/<n>`` and prints its path."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    startup.import_tensorflow()
    from .engine.data import records
    from .engine.export import saved_model

    command.read_flags_of_run(flags.MODEL_DIR.value)
    # However many devices it was trained on, an export is for one: its graph names no device.
    on_cpu = options.PlacementOptions(devices="cpu", precision=flags.PRECISION.value)
    opened = run.open_with_flags(on_cpu, averages=flags.AVERAGES.value, optimizer=True)
    sample = opened.examples("validation", limit=_SAMPLE)
    written = saved_model.write(
        opened.folder / saved_model.FOLDER,
        opened.model,
        records.specs(opened.dataset.features),
        sample=sample.fetch(range(sample.examples))[vocab.x],
        classes=opened.dataset.classes,
        about={
            "checkpoint": flags.CHECKPOINT.value,
            "averages": flags.AVERAGES.value,
            "flags": run.model_flags(),
            "data": opened.dataset.fingerprint,
        },
    )
    command.print_line(str(written))


if __name__ == "__main__":
    command.run(main, flags.EXPORT)
