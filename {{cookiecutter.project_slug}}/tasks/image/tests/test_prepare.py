import os

import numpy as np
import pytest
from absl import flags as absl_flags
from absl.testing import flagsaver
from PIL import Image
from sklearn.datasets import load_digits

from {{ cookiecutter.__package_name }} import prepare
from {{ cookiecutter.__package_name }}.engine import dataset
from {{ cookiecutter.__package_name }}.engine.data import records
from {{ cookiecutter.__package_name }}.engine.errors import UserError


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return prepare.prepare("digits", tmp_path_factory.mktemp("digits") / "data")


@pytest.fixture
def photos(tmp_path):
    """Three classes of 12, 6 and 3 images of different sizes."""
    generator = np.random.default_rng(2)
    for name, count in {"cats": 12, "dogs": 6, "zebras": 3}.items():
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(count):
            size = (*generator.integers(8, 20, 2), 3)
            values = generator.integers(0, 256, size).astype(np.uint8)
            Image.fromarray(values).save(tmp_path / "photos" / name / f"{number}.png")
    return tmp_path / "photos"


def read(prepared, name):
    """Returns all of a split, ``x`` and ``y``."""
    split = prepared.splits[name]
    reader = records.Reader(prepared.folder, name, split)
    batch = records.parse(reader.read(np.arange(split.examples)), prepared.features)
    return batch["x"].numpy(), batch["y"].numpy()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_splits_together_are_the_digits_of_scikit_learn(digits):
    bundled = load_digits()
    expected = np.rint(bundled.images * 255 / 16).astype(np.uint8)
    splits = [read(digits, name) for name in dataset.SPLITS]
    x, y = (np.concatenate([split[part] for split in splits]) for part in range(2))
    assert digits.features["x"] == dataset.Feature("uint8", (8, 8, 1))
    assert digits.features["y"] == dataset.Feature("int64", ())
    assert sorted((*image.ravel(), label) for image, label in zip(x, y, strict=True)) == sorted(
        (*image.ravel(), label) for image, label in zip(expected, bundled.target, strict=True)
    )


def test_every_class_has_the_same_share_in_every_split(digits):
    share = np.bincount(load_digits().target) / 1797
    for name, split in digits.splits.items():
        _, y = read(digits, name)
        assert np.all(np.abs(np.bincount(y) - share * split.examples) <= 1.5)


def test_examples_are_stored_in_random_order(digits):
    for name in dataset.SPLITS:
        _, y = read(digits, name)
        assert np.mean(y[1:] == y[:-1]) < 0.2


def test_statistics_are_those_of_the_training_split(digits):
    x, y = read(digits, "train")
    assert digits.statistics["mean"] == pytest.approx([x.mean()])
    assert digits.statistics["stddev"] == pytest.approx([x.std()])
    assert digits.statistics["class_weights"] == pytest.approx(len(y) / (10 * np.bincount(y)))
    everything = np.rint(load_digits().images * 255 / 16)
    assert digits.statistics["mean"] != pytest.approx([everything.mean()], rel=1e-6)


def test_statistics_are_taken_of_each_channel(photos, tmp_path):
    prepared = prepare.prepare(photos.as_posix(), tmp_path / "data", image_size=(8, 9))
    x, _ = read(prepared, "train")
    assert prepared.statistics["mean"] == pytest.approx(x.mean(axis=(0, 1, 2)))
    assert prepared.statistics["stddev"] == pytest.approx(x.std(axis=(0, 1, 2)))


def test_a_folder_of_photos_is_prepared(photos, tmp_path):
    prepared = prepare.prepare(str(photos), tmp_path / "data", image_size=(8, 9), shards=2)
    assert prepared.classes == ["cats", "dogs", "zebras"]
    assert prepared.source == "photos"
    assert {name: np.bincount(read(prepared, name)[1]).tolist() for name in dataset.SPLITS} == {
        "train": [10, 4, 1],
        "validation": [1, 1, 1],
        "test": [1, 1, 1],
    }
    x = np.concatenate([read(prepared, name)[0] for name in dataset.SPLITS])
    for path in photos.glob("*/*.png"):
        with Image.open(path) as image:
            expected = np.asarray(image.resize((9, 8), Image.Resampling.BILINEAR))
        assert np.sum(np.all(x == expected, axis=(1, 2, 3))) == 1


def test_the_same_source_and_seed_give_the_same_bytes_anywhere(photos, tmp_path):
    first = prepare.prepare(str(photos), tmp_path / "first", image_size=(8, 8), seed=4)
    photos.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").rename(photos)
    again = prepare.prepare(f"{photos}/../photos", tmp_path / "again", image_size=(8, 8), seed=4)
    assert contents(first.folder) == contents(again.folder)
    assert first.fingerprint == again.fingerprint


def test_one_changed_pixel_changes_the_fingerprint(photos, tmp_path):
    first = prepare.prepare(str(photos), tmp_path / "first", image_size=(8, 8))
    with Image.open(photos / "cats" / "0.png") as image:
        image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(photos / "cats" / "0.png")
    second = prepare.prepare(str(photos), tmp_path / "second", image_size=(8, 8))
    assert first.fingerprint != second.fingerprint


def test_the_training_split_has_the_shards_asked_for(tmp_path):
    prepared = prepare.prepare("digits", tmp_path / "data", shards=9, validation_fraction=0.3)
    assert {name: len(split.shards) for name, split in prepared.splits.items()} == {
        "train": 9,
        "validation": 5,
        "test": 3,
    }


def test_a_class_with_too_few_images_is_refused(photos, tmp_path):
    (photos / "dogs" / "0.png").rename(photos / "zebras" / "extra.png")
    for number in range(1, 5):
        (photos / "dogs" / f"{number}.png").unlink()
    with pytest.raises(UserError, match=r"class 'dogs' has 1 example\(s\)"):
        prepare.prepare(str(photos), tmp_path / "data", image_size=(8, 8))


def test_an_unreadable_image_leaves_nothing_behind(photos, tmp_path):
    path = photos / "dogs" / "3.png"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(UserError, match=f"{path}: cannot be read as an image"):
        prepare.prepare(str(photos), tmp_path / "data", image_size=(8, 8))
    assert os.listdir(tmp_path) == ["photos"]


def main(*arguments):
    """Runs the command in this process."""
    with flagsaver.flagsaver():
        absl_flags.FLAGS(["prepare", *arguments])
        prepare.main(["prepare"])


def test_the_flags_reach_the_data_set(tmp_path, capsys):
    main(
        "--source=digits",
        f"--data_dir={tmp_path}/data",
        "--image_size=6,5",
        "--seed=7",
        "--shards=3",
        "--validation_fraction=0.1",
        "--test_fraction=0.2",
    )
    loaded = dataset.load(tmp_path / "data")
    assert loaded.features["x"].shape == (6, 5, 1)
    assert loaded.seed == 7
    assert capsys.readouterr().out.splitlines() == [
        "train: 1258 examples in 3 shards",
        "validation: 180 examples in 1 shard",
        "test: 359 examples in 1 shard",
    ]


def test_preparing_again_says_that_the_data_is_there(tmp_path, capsys):
    main(f"--data_dir={tmp_path}/data")
    counts = capsys.readouterr().out
    main(f"--data_dir={tmp_path}/data")
    there = f"{tmp_path}/data holds this data set already: nothing to do\n"
    assert capsys.readouterr().out == there + counts


@pytest.mark.parametrize("change", ["--seed=1", "--shards=2", "--image_size=9,9"])
def test_other_data_is_replaced_only_with_overwrite(tmp_path, change):
    main(f"--data_dir={tmp_path}/data")
    before = contents(tmp_path / "data")
    with pytest.raises(UserError, match=r"holds another data set; .* pass --overwrite"):
        main(f"--data_dir={tmp_path}/data", change)
    assert contents(tmp_path / "data") == before
    main(f"--data_dir={tmp_path}/data", change, "--overwrite")
    assert contents(tmp_path / "data") != before


def test_the_command_prints_the_counts_last(command_line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = command_line("prepare", "--source=digits")
    assert done.status == 0, done.err
    assert done.out.splitlines()[-3:] == [
        "train: 1257 examples in 4 shards",
        "validation: 270 examples in 1 shard",
        "test: 270 examples in 1 shard",
    ]
    assert os.listdir(tmp_path) == ["data"]
    assert dataset.load(tmp_path / "data").source == "digits"


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--source=nowhere", "error: --source=nowhere: no such folder"),
        ("--data_dir=file", "error: --data_dir="),
        ("--test_fraction=2", "flag --test_fraction=2"),
        ("--image_size=8", "flag --image_size"),
        ("--colour=grey", "Unknown command line flag 'colour'"),
    ],
)
def test_a_mistake_ends_the_command_with_one_line(
    command_line, monkeypatch, tmp_path, argument, problem
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    done = command_line("prepare", argument)
    assert done.status == 1
    assert problem in done.err
    assert "Traceback" not in done.err
    assert os.listdir(tmp_path) == ["file"]
