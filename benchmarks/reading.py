"""Input: records a second of the project's pipeline against those that people write, and the wait for it in training.

40,000 records of 28x28 pixels, shuffled, in batches. The per-record pipeline parses each record in a parallel map,
then batches; the naive one does so one record at a time and nothing ahead. Of PNG files, others decode each in a
parallel map: the project decodes them when it prepares the data. A step of the default network waits while its figures
are there and the next batch is not.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from contenders import NETWORKS, STRATEGY, Ours, Setting, options, prepared
from digit_classifier.engine import batches, dataset
from digit_classifier.engine.examples import Examples, open_split
from measuring import ROUNDS, Bar, Row, report, take_turns

SHAPE = (28, 28, 1)
RECORDS = 40_000
BATCH = 128
SHUFFLED = 10_000
STEPS = 400
AUTO = tf.data.AUTOTUNE
FEATURES = {"x": tf.io.FixedLenFeature([], tf.string), "y": tf.io.FixedLenFeature([], tf.int64)}


def ours(split: Examples) -> tf.data.Dataset:
    """Return the batches of the project."""
    return batches.training(split, STRATEGY, batch_size=BATCH, seed=0)


def parse_one(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Parse one record."""
    parsed = tf.io.parse_single_example(record, FEATURES)
    return tf.reshape(tf.io.decode_raw(parsed["x"], tf.uint8), SHAPE), parsed["y"]


def files(data: dataset.Dataset) -> list[str]:
    """Return the shards of the training split."""
    return [str(data.folder / shard.file) for shard in data.splits["train"].shards]


def per_record(data: dataset.Dataset) -> tf.data.Dataset:
    """Return the pipeline of many a tutorial."""
    records = tf.data.TFRecordDataset(files(data), num_parallel_reads=AUTO)
    shuffled = records.shuffle(SHUFFLED).repeat()
    return shuffled.map(parse_one, num_parallel_calls=AUTO).batch(BATCH).prefetch(AUTO)


def naive(data: dataset.Dataset) -> tf.data.Dataset:
    """Return the same with nothing in parallel."""
    records = tf.data.TFRecordDataset(files(data))
    return records.map(parse_one).shuffle(SHUFFLED).repeat().batch(BATCH)


def from_png(folder: Path) -> tf.data.Dataset:
    """Write PNG files and return the pipeline that decodes them."""
    draw = np.random.default_rng(0)
    folder.mkdir()
    names = [str(folder / f"{i}.png") for i in range(2_000)]
    for name in names:
        image = draw.integers(0, 255, SHAPE, dtype=np.uint8)
        tf.io.write_file(name, tf.io.encode_png(image))

    def decode(name: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.io.decode_png(tf.io.read_file(name), channels=1), SHAPE)

    shuffled = tf.data.Dataset.from_tensor_slices(names).shuffle(len(names)).repeat()
    return shuffled.map(decode, num_parallel_calls=AUTO).batch(BATCH).prefetch(AUTO)


def rate(batched: tf.data.Dataset, count: int) -> Callable[[], float]:
    """Return a function that takes `count` batches and returns records a second."""
    iterator = iter(batched)
    next(iterator)

    @tf.function
    def take(iterator: Any) -> tf.Tensor:
        seen = tf.constant(0, tf.int64)
        for _ in tf.range(count):
            batch = next(iterator)
            seen += tf.size(tf.nest.flatten(batch)[0], tf.int64)
        return seen

    take(iterator)

    def measure() -> float:
        began = time.perf_counter()
        take(iterator)
        return count * BATCH / (time.perf_counter() - began)

    return measure


def raw(data: dataset.Dataset) -> float:
    """Read the shards and do nothing with them; return records a second."""
    began = time.perf_counter()
    for file in files(data):
        Path(file).read_bytes()
    return RECORDS / (time.perf_counter() - began)


def waiting(folder: Path) -> list[Row]:
    """Return the seconds that steps of the default network wait for their input, beside all of their seconds."""
    data = prepared(folder / "digits", (8, 8, 1), 1_257)
    setting = Setting(data, NETWORKS["default"], 32, None, folder)
    run = Ours(setting, options())
    totals = []
    for _ in range(ROUNDS + 1):
        run.round(STEPS)
        totals.append((run.trainer.progress.waited, run.trainer.progress.seconds))
    waited, seconds = (np.diff(total).tolist() for total in zip(*totals, strict=True))
    return [Row("waiting for input: all seconds", waited, seconds, "s", Bar(0.02, at_most=True))]


def main() -> None:
    """Compare the pipelines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = prepared(folder / "small", SHAPE, RECORDS)
        contenders = {
            "memory": rate(ours(open_split(data, "train")), 2_000),
            "shards": rate(ours(open_split(data, "train", in_memory_bytes=0)), 300),
            "per record": rate(per_record(data), 300),
            "naive": rate(naive(data), 100),
            "png": rate(from_png(folder / "png"), 100),
            "raw": lambda: raw(data),
        }
        pairs = [
            ("in memory: per-record map", "memory", "per record", Bar(4.0)),
            ("in memory: naive", "memory", "naive", None),
            ("in memory: PNG files decoded in a map", "memory", "png", None),
            ("in memory: raw bytes of the files", "memory", "raw", None),
            ("from shards: per-record map", "shards", "per record", None),
            ("from shards: naive", "shards", "naive", None),
        ]
        rows = take_turns(contenders, pairs, unit="records/s")
        report([*rows, *waiting(folder)], arguments.output)


if __name__ == "__main__":
    main()
