"""Turns source data into TFRecord shards with three splits, and ``dataset.json``. Yours to edit.

python -m <package>.prepare --source=digits --data_dir=data
python -m <package>.prepare --source=photos --image_size=64,64 --data_dir=data
"""

# What takes long to import (TensorFlow, NumPy, Pillow) is imported where it is used: --help does not wait for it.
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import flags, task_flags
from .engine import command
from .engine.system import startup
from .vocab import vocab

if TYPE_CHECKING:
    import numpy as np

    from .engine.dataset import Dataset


def main(_: Sequence[str]) -> None:
    """Prepares a data set as the flags say, and prints the number of examples in each split."""
    startup.import_tensorflow()
    from .engine.data import preparing

    height_width = task_flags.IMAGE_SIZE.value
    prepared = prepare(
        task_flags.SOURCE.value,
        flags.DATA_DIR.value,
        image_size=(int(height_width[0]), int(height_width[1])) if height_width else None,
        seed=flags.SEED.value,
        shards=flags.SHARDS.value,
        validation_fraction=flags.VALIDATION_FRACTION.value,
        test_fraction=flags.TEST_FRACTION.value,
        overwrite=flags.OVERWRITE.value,
    )
    preparing.print_counts(prepared)


def prepare(
    source: str,
    data_dir: str | Path,
    *,
    image_size: tuple[int, int] | None = None,
    seed: int = 0,
    shards: int = 4,
    validation_fraction: float = 0.15,
    test_fraction: float = 0.15,
    overwrite: bool = False,
) -> Dataset:
    """Prepares a data set; the same arguments and source give the same bytes.

    Args:
        source: ``digits``, or a folder that holds a folder of images for each class.
        data_dir: what the data set becomes; it is there when it is complete, and not before.
        image_size: height and width that images are resized to; None takes them as they are.
        seed: decides which example goes to which split, and their order.
        shards: number of files of the training split; the other splits get files of about the same size.
        validation_fraction: share of the examples that decides which checkpoint is best.
        test_fraction: share of the examples kept for the last evaluation.
        overwrite: whether another data set in ``data_dir`` may be replaced.

    Raises:
        UserError: the source does not make a data set, or ``data_dir`` cannot or must not be written.
    """
    from .engine import dataset
    from .engine.data import preparing, splits
    from .sources import open_images

    images = open_images(source, image_size)
    if images.notice:
        command.print_line(images.notice)
    statistics = _Statistics(channels=images.shape[-1], classes=len(images.classes))
    return preparing.prepare(
        data_dir,
        source=images.name,
        seed=seed,
        features={
            vocab.x: dataset.Feature("uint8", images.shape),
            vocab.y: dataset.Feature("int64", ()),
        },
        classes=images.classes,
        indices=splits.stratified(
            images.labels,
            images.classes,
            validation_fraction=validation_fraction,
            test_fraction=test_fraction,
            seed=seed,
        ),
        read=lambda number: {vocab.x: images.read(number), vocab.y: images.labels[number]},
        see=statistics.add,
        statistics=statistics.result,
        shards=shards,
        overwrite=overwrite,
    )


class _Statistics:
    """What the model needs to know of the training split, summed up as its examples pass by.

    The sums are whole numbers: exact, and the same in any order.
    """

    def __init__(self, *, channels: int, classes: int) -> None:
        self._pixels = 0
        self._sums = [0] * channels
        self._squares = [0] * channels
        self._counts = [0] * classes

    def add(self, example: Mapping[str, Any]) -> None:
        """Counts an example in."""
        pixels = example[vocab.x].reshape(-1, len(self._sums)).astype("int64")
        self._pixels += len(pixels)
        self._sums = _added(self._sums, pixels)
        self._squares = _added(self._squares, pixels**2)
        self._counts[example[vocab.y]] += 1

    def result(self) -> dict[str, list[float]]:
        """Returns mean and standard deviation of each channel, in 0 to 255, and the weight of each class.

        With these weights all classes count alike in the loss, and an example weighs 1 in the mean.
        """
        n = self._pixels
        examples = sum(self._counts)
        return {
            "mean": [total / n for total in self._sums],
            "stddev": [
                math.sqrt((n * square - total**2) / n**2)
                for total, square in zip(self._sums, self._squares, strict=True)
            ],
            "class_weights": [examples / (len(self._counts) * count) for count in self._counts],
        }


def _added(sums: list[int], pixels: np.ndarray) -> list[int]:
    return [total + new for total, new in zip(sums, pixels.sum(axis=0).tolist(), strict=True)]


if __name__ == "__main__":
    command.run(main, flags.PREPARE)
