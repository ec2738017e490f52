"""Writes a prepared data set: its three splits and ``dataset.json``, all of it or nothing."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from .. import command, dataset
from . import records, replacing

Example = dict[str, Any]


def write(
    data_dir: str | Path,
    fill: Callable[[Path], Mapping[str, dataset.Split]],
    *,
    source: str,
    seed: int,
    features: Mapping[str, dataset.Feature],
    classes: Sequence[str],
    statistics: Callable[[], Mapping[str, Any]],
    overwrite: bool,
) -> dataset.Dataset:
    """Makes ``data_dir`` a data set whose files are of any format; says so if it is there already.

    Args:
        data_dir: what the data set becomes; it is there when it is complete, and not before.
        fill: writes the examples into the empty folder that it is given, and returns the three splits: what
            ``dataset.Shard.of`` returns for each file. The same source and seed must give the same bytes.
        source: what it is made from, for ``dataset.json``; without a path.
        seed: what decided the splits, likewise.
        features: of every example.
        classes: their names, in the order of the labels; empty where there are none.
        statistics: returns what the model needs to know of the training split; called after ``fill``.
        overwrite: whether another data set in ``data_dir`` may be replaced.

    Raises:
        UserError: ``data_dir`` cannot or must not be written, or ``fill`` raised one.
    """

    def write_all(folder: Path) -> None:
        splits = fill(folder)
        dataset.write(
            folder,
            source=source,
            seed=seed,
            features=features,
            classes=classes,
            statistics=statistics(),
            splits=splits,
        )

    if not replacing.replace(data_dir, write_all, source=source, seed=seed, overwrite=overwrite):
        command.print_line(f"{data_dir} holds this data set already: nothing to do")
    return dataset.load(data_dir)


def prepare(
    data_dir: str | Path,
    *,
    features: Mapping[str, dataset.Feature],
    read: Callable[[int], Example],
    indices: Mapping[str, np.ndarray] | None = None,
    numbers: Mapping[str, np.ndarray] | None = None,
    see: Callable[[Example], None] | None = None,
    shards: int,
    **described: Any,
) -> dataset.Dataset:
    """Makes ``data_dir`` a data set of TFRecord shards; says so if it is there already.

    Args:
        data_dir: see ``write``.
        features: of every example.
        read: returns the example of an index, with a value for each feature.
        indices: for each split those of its examples, in the order that they are stored in.
        numbers: what the last release called ``indices``; it goes with the next.
        see: called with each training example as it is written.
        shards: number of files of the training split; the other splits get files of about the same size.
        described: ``source``, ``seed``, ``classes``, ``statistics`` and ``overwrite``.

    Raises:
        UserError: ``data_dir`` cannot or must not be written, or ``read`` raised one.
    """
    chosen = indices or numbers or {}
    sizes = {split: len(of) for split, of in chosen.items()}
    per_shard = math.ceil(sizes[dataset.TRAIN] / shards)

    def fill(folder: Path) -> dict[str, dataset.Split]:
        with tqdm(total=sum(sizes.values()), unit=" examples", disable=None) as bar:

            def examples(split: str) -> Iterator[Example]:
                for index in chosen[split].tolist():
                    example = read(index)
                    if see is not None and split == dataset.TRAIN:
                        see(example)
                    yield example
                    bar.update()

            return {
                split: records.write_split(
                    folder, split, examples(split), features, n, math.ceil(n / per_shard)
                )
                for split, n in sizes.items()
            }

    return write(data_dir, fill, features=features, **described)


def print_counts(prepared: dataset.Dataset) -> None:
    """Prints the number of examples in each split."""
    for name, split in prepared.splits.items():
        shards = f"{len(split.shards)} shard{'s' if len(split.shards) > 1 else ''}"
        command.print_line(f"{name}: {split.examples} examples in {shards}")
