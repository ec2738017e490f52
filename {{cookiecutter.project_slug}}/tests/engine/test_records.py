import os
import threading

import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import dataset
from {{ cookiecutter.__package_name }}.engine.data import records, tfrecord
from {{ cookiecutter.__package_name }}.engine.errors import UserError

FEATURES = {"x": dataset.Feature("uint8", (2, 3)), "y": dataset.Feature("int64", ())}
COUNT = 10


def examples(count=COUNT):
    generator = np.random.default_rng(1)
    return [
        {"x": generator.integers(0, 256, [2, 3]).astype(np.uint8), "y": np.int64(number)}
        for number in range(count)
    ]


@pytest.fixture
def split(tmp_path):
    return records.write_split(tmp_path, "train", examples(), FEATURES, COUNT, shards=3)


def read_and_parse(reader, numbers, features=FEATURES):
    return records.parse(tf.constant(reader.read(np.array(numbers))), features)


def flip_byte(path, position):
    contents = bytearray(path.read_bytes())
    contents[position] ^= 1
    path.write_bytes(contents)


def test_examples_are_read_in_any_order_as_they_were_written(tmp_path, split):
    numbers = [7, 0, 9, 3, 3, 5]
    batch = read_and_parse(records.Reader(tmp_path, "train", split), numbers)
    written = examples()
    assert batch["x"].dtype == tf.uint8
    assert batch["y"].dtype == tf.int64
    np.testing.assert_array_equal(batch["x"], [written[number]["x"] for number in numbers])
    np.testing.assert_array_equal(batch["y"], numbers)


def test_every_dtype_survives(tmp_path):
    features = {
        "bytes": dataset.Feature("uint8", (4, 1)),
        "floats": dataset.Feature("float32", (3,)),
        "integers": dataset.Feature("int64", (2, 2)),
        "texts": dataset.Feature("string", (2,)),
        "text": dataset.Feature("string", ()),
    }
    written = {
        "bytes": np.array([[0], [1], [128], [255]], np.uint8),
        "floats": np.array([np.nan, -np.inf, 1e-45], np.float32),
        "integers": np.array([[-(2**63), 2**63 - 1], [0, -1]]),
        "texts": np.array(["größer", ""]),
        "text": b"\x00\xff\x00",
    }
    split = records.write_split(tmp_path, "train", [written, written], features, 2, shards=1)
    batch = read_and_parse(records.Reader(tmp_path, "train", split), [0, 1], features)
    for row in range(2):
        for name in ("bytes", "floats", "integers"):
            np.testing.assert_array_equal(batch[name][row], written[name])
        assert batch["texts"][row].numpy().tolist() == ["größer".encode(), b""]
        assert batch["text"][row].numpy() == b"\x00\xff\x00"


def test_shards_are_plain_tfrecord_files(tmp_path, split):
    files = [str(tmp_path / shard.file) for shard in split.shards]
    found = [tf.train.Example.FromString(r.numpy()) for r in tf.data.TFRecordDataset(files)]
    assert [e.features.feature["y"].int64_list.value[0] for e in found] == list(range(COUNT))
    assert [e.features.feature["x"].bytes_list.value[0] for e in found] == [
        example["x"].tobytes() for example in examples()
    ]


def test_records_written_by_tensorflow_have_the_same_bytes(tmp_path, split):
    with tf.io.TFRecordWriter(str(tmp_path / "other")) as writer:
        for example in examples()[: split.shards[0].examples]:
            writer.write(records.serialise(example, FEATURES))
    assert (tmp_path / "other").read_bytes() == (tmp_path / split.shards[0].file).read_bytes()


def test_examples_go_to_shards_in_runs_of_nearly_equal_length(tmp_path, split):
    assert [shard.examples for shard in split.shards] == [4, 3, 3]
    assert [shard.file for shard in split.shards] == [
        f"train-{number:05d}-of-00003.tfrecord" for number in range(3)
    ]
    assert [shard.bytes for shard in split.shards] == [
        (tmp_path / shard.file).stat().st_size for shard in split.shards
    ]


def test_no_shard_is_empty(tmp_path):
    split = records.write_split(tmp_path, "test", examples(2), FEATURES, 2, shards=5)
    assert [shard.examples for shard in split.shards] == [1, 1]


def test_the_same_examples_give_the_same_bytes(tmp_path, split):
    again = tmp_path / "again"
    again.mkdir()
    assert records.write_split(again, "train", examples(), FEATURES, COUNT, shards=3) == split
    for path in again.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


@pytest.mark.parametrize("announced", [COUNT - 1, COUNT + 1])
def test_another_number_of_examples_than_announced_is_refused(tmp_path, announced):
    with pytest.raises(ValueError, match="announced"):
        records.write_split(tmp_path, "train", examples(), FEATURES, announced, shards=3)


@pytest.mark.parametrize(
    ("example", "problem"),
    [
        ({"x": np.zeros([3, 2], np.uint8), "y": np.int64(0)}, r"'x' is uint8 \[3, 2\]"),
        ({"x": np.zeros([2, 3], np.float64), "y": np.int64(0)}, "'x' is float64"),
        ({"x": np.zeros([2, 3], np.uint8), "y": "1"}, "expected int64"),
        ({"x": [[1, 2, 3], [4, 5, 6]], "y": np.int64(0)}, "'x' is int64"),
        ({"x": np.zeros([2, 3], np.uint8)}, r"example has \['x'\]"),
    ],
)
def test_an_example_that_is_not_as_described_is_refused(example, problem):
    with pytest.raises(ValueError, match=problem):
        records.serialise(example, FEATURES)


def test_a_number_is_no_string():
    with pytest.raises(ValueError, match="expected string"):
        records.serialise({"text": 7}, {"text": dataset.Feature("string", ())})


@pytest.mark.parametrize(
    "position",
    [0, 7, 8, 11, tfrecord.HEADER_BYTES, tfrecord.HEADER_BYTES + 9, -4, -1],
    ids=lambda position: f"byte {position}",
)
def test_a_flipped_byte_is_reported_with_file_and_record(tmp_path, split, position):
    reader = records.Reader(tmp_path, "train", split)
    path = tmp_path / split.shards[1].file
    size = path.stat().st_size // 3
    flip_byte(path, 2 * size + position % size)
    with pytest.raises(UserError, match=f"{path}: record 2 is corrupt"):
        reader.read(np.arange(COUNT))
    assert len(reader.read(np.delete(np.arange(COUNT), 6))) == COUNT - 1


def test_a_shard_that_was_cut_short_is_reported_with_file_and_record(tmp_path, split):
    reader = records.Reader(tmp_path, "train", split)
    path = tmp_path / split.shards[2].file
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(UserError, match=f"{path}: record 2 is cut short"):
        reader.read(np.array([0, 9]))


def test_a_missing_shard_is_reported(tmp_path, split):
    reader = records.Reader(tmp_path, "train", split)
    path = tmp_path / split.shards[0].file
    path.unlink()
    with pytest.raises(UserError, match=f"{path}: cannot be read") as caught:
        reader.read(np.array([0]))
    assert "prepare --source=" in str(caught.value)


def test_a_missing_or_damaged_index_is_reported(tmp_path, split):
    path = tmp_path / dataset.index_file("train")
    good = path.read_bytes()
    numbers = np.load(path)
    flipped = good[:-24] + b"\x01" + good[-23:]
    for damaged in (good[:-1], b"", b"PK\x03\x04" + good, bytes(200), flipped):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=str(path)):
            records.Reader(tmp_path, "train", split)
    for other in (numbers[:-1], numbers.astype(np.int32), numbers[::-1]):
        np.save(path, other)
        with pytest.raises(UserError, match="is not the index"):
            records.Reader(tmp_path, "train", split)
    path.unlink()
    with pytest.raises(UserError, match="No such file"):
        records.Reader(tmp_path, "train", split)


def test_few_of_many_shards_are_open_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_most_open", lambda: 2)
    monkeypatch.setattr(tfrecord, "File", CountedFile)
    split = records.write_split(tmp_path, "train", examples(), FEATURES, COUNT, shards=COUNT)
    reader = records.Reader(tmp_path, "train", split)
    for _ in range(3):
        reader.read(np.arange(COUNT))
        assert CountedFile.open <= 3
    assert CountedFile.opened == 3 * COUNT


@pytest.mark.parametrize("has_pread", [True, False], ids=["pread", "Windows"])
def test_threads_read_what_one_reads(tmp_path, monkeypatch, has_pread):
    if not has_pread:
        monkeypatch.delattr(os, "pread", raising=False)
    monkeypatch.setattr(records, "_most_open", lambda: 1)
    split = records.write_split(tmp_path, "train", examples(), FEATURES, COUNT, shards=COUNT)
    reader = records.Reader(tmp_path, "train", split)
    alone = reader.read(np.arange(COUNT))
    differing = []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(200):
            numbers = generator.integers(0, COUNT, 7)
            if not np.array_equal(reader.read(numbers), alone[numbers]):
                differing.append(seed)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not differing


class CountedFile(tfrecord.File):
    """Counts how many are open, and how many ever were."""

    open = opened = 0

    def __init__(self, path):
        super().__init__(path)
        CountedFile.open += 1
        CountedFile.opened += 1

    def __del__(self, *arguments):
        super().__del__(*arguments)
        CountedFile.open -= 1
