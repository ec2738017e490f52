"""Writes a prepared data set: the shards of three splits and ``dataset.json``, all of it or nothing."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from .. import command, dataset
from . import records, replacing

Example = dict[str, Any]


def prepare(
    data_dir: str | Path,
    *,
    source: str,
    seed: int,
    features: Mapping[str, dataset.Feature],
    classes: Sequence[str],
    numbers: Mapping[str, np.ndarray],
    read: Callable[[int], Example],
    statistics: Callable[[], Mapping[str, Any]],
    see: Callable[[Example], None] | None = None,
    shards: int,
    overwrite: bool,
) -> dataset.Dataset:
    """Makes ``data_dir`` a data set; says so if it is there already.

    Args:
        data_dir: what the data set becomes; it is there when it is complete, and not before.
        source: what it is made from, for ``dataset.json``; without a path.
        seed: what decided the splits, likewise.
        features: of every example.
        classes: their names, in the order of the labels; empty where there are none.
        numbers: for each split those of its examples, in the order that they are stored in.
        read: returns the example of a number, with a value for each feature.
        statistics: returns what the model needs to know of the training split, once that is written.
        see: called with each training example as it is written.
        shards: number of files of the training split; the other splits get files of about the same size.
        overwrite: whether another data set in ``data_dir`` may be replaced.

    Raises:
        UserError: ``data_dir`` cannot or must not be written, or ``read`` raised one.
    """
    per_shard = math.ceil(len(numbers[dataset.TRAIN]) / shards)

    def write(folder: Path) -> None:
        written = {}
        total = sum(map(len, numbers.values()))
        with tqdm(total=total, unit=" examples", disable=None) as bar:
            for split, chosen in numbers.items():

                def examples(split: str, chosen: np.ndarray) -> Iterator[Example]:
                    for number in chosen.tolist():
                        example = read(number)
                        if see is not None and split == dataset.TRAIN:
                            see(example)
                        yield example
                        bar.update()

                written[split] = records.write_split(
                    folder,
                    split,
                    examples(split, chosen),
                    features,
                    len(chosen),
                    math.ceil(len(chosen) / per_shard),
                )
        dataset.write(
            folder,
            source=source,
            seed=seed,
            features=features,
            classes=classes,
            statistics=statistics(),
            splits=written,
        )

    is_new = replacing.replace(data_dir, write, source=source, seed=seed, overwrite=overwrite)
    if not is_new:
        command.print_line(f"{data_dir} holds this data set already: nothing to do")
    return dataset.load(data_dir)


def print_counts(prepared: dataset.Dataset) -> None:
    """Prints the number of examples in each split."""
    for name, split in prepared.splits.items():
        shards = len(split.shards)
        plural = "s" if shards > 1 else ""
        command.print_line(f"{name}: {split.examples} examples in {shards} shard{plural}")
