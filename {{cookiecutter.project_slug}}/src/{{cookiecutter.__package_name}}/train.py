"""Trains the model, or goes on training it: ``python -m <package>.train --model_dir=runs/baseline``."""

import dataclasses
from collections.abc import Sequence

from . import flags
from .engine import command


def main(_: Sequence[str]) -> int:
    """Trains; returns 0, or 42 when a signal stopped it after saving."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    from . import data
    from .engine import batches, placement, training
    from .engine import dataset as datasets
    from .model import Model

    dataset = datasets.load(flags.DATA_DIR.value)
    train_split_size = min(
        dataset.splits["train"].examples,
        flags.LIMIT_EXAMPLES.value or dataset.splits["train"].examples,
    )
    train_steps = flags.train_steps(train_split_size)
    with training.lock_folder(flags.MODEL_DIR.value):
        command.write_flags(flags.MODEL_DIR.value, flags.TRAIN)
        strategy = placement.strategy(flags.placement_options())
        with strategy.scope():
            model = Model.for_dataset(
                dataset,
                dropout_rate=flags.DROPOUT_RATE.value,
                optimizer=flags.optimizer_options(train_steps),
                seed=flags.SEED.value,
            )
        trainer = training.Trainer(
            model,
            strategy=strategy,
            train_split=batches.open_split(dataset, "train", limit=flags.LIMIT_EXAMPLES.value),
            validation_split=batches.open_split(dataset, "validation"),
            model_dir=flags.MODEL_DIR.value,
            batch_size=flags.BATCH_SIZE.value,
            seed=flags.SEED.value,
            options=flags.loop_options(train_steps),
            augment=data.augment if flags.AUGMENT.value else None,
        )
        outcome = trainer.run()
    result = dataclasses.asdict(outcome)
    stopped = result.pop("stopped")
    command.print_result(result)
    return training.STOPPED if stopped else 0


if __name__ == "__main__":
    command.run(main, flags.TRAIN)
