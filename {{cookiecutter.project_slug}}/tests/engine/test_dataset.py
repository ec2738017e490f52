import dataclasses
import hashlib
import json
import os
from typing import Any

import numpy as np
import pytest

from {{ cookiecutter.__package_name }}.engine import dataset
from {{ cookiecutter.__package_name }}.engine.data import records
from {{ cookiecutter.__package_name }}.engine.errors import UserError

FEATURES = {"x": dataset.Feature("float32", (2, 3)), "y": dataset.Feature("int64", ())}
DESCRIPTION: dict[str, Any] = {
    "source": "nowhere",
    "seed": 3,
    "features": FEATURES,
    "classes": ["left", "größer"],
    "statistics": {"mean": [0.1]},
}
SIZES = {"train": 6, "validation": 2, "test": 1}


@pytest.fixture
def data_dir(tmp_path):
    splits = {}
    for name, count in SIZES.items():
        examples = [{"x": np.ones([2, 3], np.float32), "y": np.int64(1)}] * count
        splits[name] = records.write_split(tmp_path, name, examples, FEATURES, count, shards=2)
    dataset.write(tmp_path, **DESCRIPTION, splits=splits)
    return tmp_path


def edit(data_dir, change):
    path = data_dir / dataset.FILE
    description = json.loads(path.read_bytes())
    change(description)
    path.write_text(json.dumps(description), encoding="utf-8")


def test_what_is_loaded_is_what_was_written(data_dir):
    loaded = dataset.load(data_dir)
    assert {name: split.examples for name, split in loaded.splits.items()} == SIZES
    assert {name: getattr(loaded, name) for name in DESCRIPTION} == DESCRIPTION
    assert loaded.folder == data_dir
    assert set(loaded.files) == {path.name for path in data_dir.iterdir()}


def test_x_is_a_value_or_made_of_columns_and_not_both(data_dir):
    features = {**FEATURES, dataset.column_feature("age"): dataset.Feature("float32", ())}
    with pytest.raises(ValueError, match="x is one or the other"):
        dataset.write(data_dir, **{**DESCRIPTION, "features": features}, splits={})


def test_the_fingerprint_is_the_digest_of_the_description(data_dir):
    contents = (data_dir / dataset.FILE).read_bytes()
    assert dataset.load(data_dir).fingerprint == hashlib.sha256(contents).hexdigest()


def test_the_description_holds_the_digest_of_every_shard(data_dir):
    for split in dataset.load(data_dir).splits.values():
        for shard in split.shards:
            contents = (data_dir / shard.file).read_bytes()
            assert shard.sha256 == hashlib.sha256(contents).hexdigest()


def test_the_size_of_a_decoded_example_is_known(data_dir):
    loaded = dataset.load(data_dir)
    assert loaded.example_bytes == 2 * 3 * 4 + 8
    strings = {**FEATURES, "name": dataset.Feature("string", ())}
    assert dataclasses.replace(loaded, features=strings).example_bytes > 2 * 3 * 4 + 8


def test_where_there_is_no_data_yet_the_command_to_run_is_named(tmp_path):
    with pytest.raises(UserError) as caught:
        dataset.load(tmp_path / "data")
    package = dataset.__name__.partition(".")[0]
    assert f"--data_dir={tmp_path}/data: no data there yet" in str(caught.value)
    command = f"python -m {package}.prepare --source=... --data_dir={tmp_path}/data"
    assert command in str(caught.value)


@pytest.mark.parametrize(
    "contents",
    ["", "{", "[]", "7", "{}", '{"format": 1}', '{"format": 1, "splits": 3}', "\udcff"],
)
def test_a_damaged_description_is_refused(data_dir, contents):
    (data_dir / dataset.FILE).write_bytes(contents.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=f"{data_dir / dataset.FILE}: damaged") as caught:
        dataset.load(data_dir)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["source", "seed", "features", "classes", "statistics", "splits"])
def test_a_description_that_lacks_something_is_refused(data_dir, name):
    edit(data_dir, lambda description: description.pop(name))
    with pytest.raises(UserError, match=f"damaged .no '{name}'"):
        dataset.load(data_dir)


def test_an_unknown_dtype_is_refused(data_dir):
    edit(data_dir, lambda description: description["features"]["x"].update(dtype="float16"))
    with pytest.raises(UserError, match="'float16' is none of uint8, float32"):
        dataset.load(data_dir)


def test_another_format_is_refused(data_dir):
    edit(data_dir, lambda description: description.update(format=2))
    with pytest.raises(UserError, match="its format is 2, this program reads 1"):
        dataset.load(data_dir)


@pytest.mark.parametrize(
    "change",
    [
        lambda description: description["features"]["x"].update(shape=[3, 2]),
        lambda description: description["features"].pop("y"),
        lambda description: description["classes"].pop(),
        lambda description: description["statistics"].update(mean=[0.2]),
        lambda description: description.update(seed=4),
        lambda description: description.pop("digest"),
    ],
    ids=["shape", "feature", "class", "statistic", "seed", "digest"],
)
def test_a_description_that_was_changed_is_refused(data_dir, change):
    edit(data_dir, change)
    with pytest.raises(UserError, match=f"{data_dir / dataset.FILE}: was changed after"):
        dataset.load(data_dir)


def test_a_description_that_was_only_written_differently_is_taken(data_dir):
    edit(data_dir, lambda description: description)
    dataset.load(data_dir)


def test_counts_that_disagree_are_refused(data_dir):
    edit(data_dir, lambda description: description["splits"]["train"].update(examples=5))
    with pytest.raises(UserError, match="train: 5 examples, but its shards hold 6"):
        dataset.load(data_dir)


def test_an_empty_split_is_refused(data_dir):
    empty = {"examples": 0, "shards": []}
    edit(data_dir, lambda description: description["splits"].update(validation=empty))
    with pytest.raises(UserError, match="the split 'validation' is empty"):
        dataset.load(data_dir)


def test_a_missing_shard_is_refused(data_dir):
    path = data_dir / "train-00001-of-00002.tfrecord"
    path.unlink()
    with pytest.raises(UserError, match=f"{path}: named in dataset.json, but cannot be read"):
        dataset.load(data_dir)


def test_a_shard_of_another_size_is_refused(data_dir):
    path = data_dir / "test-00000-of-00001.tfrecord"
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(UserError, match=f"{path}: holds {size - 1} bytes, .* says {size};"):
        dataset.load(data_dir)
