"""Turns waves of random frequency and phase into TFRecord shards: the model learns to tell what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import flags
from .engine import command
from .engine.system import startup
from .vocab import vocab

if TYPE_CHECKING:
    from .engine.dataset import Dataset

SOURCE = "waves"
EXAMPLES = 600
STEPS = 16


def main(_: Sequence[str]) -> None:
    """Prepares a data set as the flags say, and prints the number of examples in each split."""
    startup.import_tensorflow()
    from .engine.data import preparing

    prepared = prepare(
        flags.DATA_DIR.value,
        seed=flags.SEED.value,
        shards=flags.SHARDS.value,
        validation_fraction=flags.VALIDATION_FRACTION.value,
        test_fraction=flags.TEST_FRACTION.value,
        overwrite=flags.OVERWRITE.value,
    )
    preparing.print_counts(prepared)


def prepare(
    data_dir: str | Path,
    *,
    seed: int = 0,
    shards: int = 4,
    validation_fraction: float = 0.15,
    test_fraction: float = 0.15,
    overwrite: bool = False,
) -> Dataset:
    """Prepares a data set; the same arguments give the same bytes."""
    import numpy as np

    from .engine import dataset
    from .engine.data import preparing, splits

    generator = np.random.default_rng(seed)
    frequency = generator.uniform(0.2, 0.8, [EXAMPLES, 1])
    phase = generator.uniform(0, 2 * np.pi, [EXAMPLES, 1])
    waves = np.sin(frequency * np.arange(STEPS + 1) + phase).astype(np.float32)
    return preparing.prepare(
        data_dir,
        source=SOURCE,
        seed=seed,
        features={
            vocab.x: dataset.Feature("float32", (STEPS, 1)),
            vocab.y: dataset.Feature("float32", ()),
        },
        classes=[],
        numbers=splits.stratified(
            np.zeros(EXAMPLES, np.int64),
            [SOURCE],
            validation_fraction=validation_fraction,
            test_fraction=test_fraction,
            seed=seed,
        ),
        read=lambda number: {vocab.x: waves[number, :STEPS, None], vocab.y: waves[number, STEPS]},
        statistics=dict,
        shards=shards,
        overwrite=overwrite,
    )


if __name__ == "__main__":
    command.run(main, flags.PREPARE)
