import os
import signal
import subprocess
import sys
import textwrap

import filelock
import numpy as np
import pytest

from {{ cookiecutter.__package_name }}.engine import dataset
from {{ cookiecutter.__package_name }}.engine.data import preparing, records, replacing
from {{ cookiecutter.__package_name }}.engine.errors import UserError

FEATURES = {"y": dataset.Feature("int64", ())}


def write_of(value, source="numbers", seed=0):
    """Returns a function that writes a data set full of ``value``."""

    def write(folder):
        splits = {
            name: records.write_split(folder, name, [{"y": np.int64(value)}], FEATURES, 1, 1)
            for name in dataset.SPLITS
        }
        dataset.write(
            folder,
            source=source,
            seed=seed,
            features=FEATURES,
            classes=[],
            statistics={},
            splits=splits,
        )

    return write


def replace(data_dir, value, *, source="numbers", seed=0, overwrite=False):
    write = write_of(value, source, seed)
    return replacing.replace(data_dir, write, source=source, seed=seed, overwrite=overwrite)


def value_in(data_dir):
    split = dataset.load(data_dir).splits["train"]
    serialised = records.Reader(data_dir, "train", split).read(np.array([0]))
    return int(records.parse(serialised, FEATURES)["y"][0])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_new_data_set_is_written_and_nothing_beside_it(tmp_path):
    assert replace(tmp_path / "deep" / "data", 1)
    assert value_in(tmp_path / "deep" / "data") == 1
    assert os.listdir(tmp_path / "deep") == ["data"]


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "data").mkdir()
    assert replace(tmp_path / "data", 1)
    assert value_in(tmp_path / "data") == 1


def written(folder):
    """Returns which files there are and when they were written; that they were read is no change."""
    files = {path.name: path.stat() for path in folder.iterdir()}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in files.items()}


def test_the_same_data_set_is_left_as_it_is(tmp_path):
    replace(tmp_path / "data", 1)
    before = written(tmp_path / "data")
    assert not replace(tmp_path / "data", 1)
    assert written(tmp_path / "data") == before


@pytest.mark.parametrize("damaged", ["train-00000-of-00001.tfrecord", "test.index.npy"])
def test_the_same_data_set_is_repaired_if_damaged(tmp_path, damaged):
    replace(tmp_path / "data", 1)
    before = contents(tmp_path / "data")
    for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(b"?")):
        damage(tmp_path / "data" / damaged)
        assert replace(tmp_path / "data", 1)
        assert contents(tmp_path / "data") == before


@pytest.mark.parametrize("change", [{"value": 2}, {"source": "others"}, {"seed": 1}])
def test_another_data_set_is_replaced_only_when_told_to(tmp_path, change):
    replace(tmp_path / "data", 1)
    before = contents(tmp_path / "data")
    new = {"value": 1, **change}
    with pytest.raises(UserError, match=r"holds another data set; .* --overwrite"):
        replace(tmp_path / "data", **new)
    assert contents(tmp_path / "data") == before
    assert replace(tmp_path / "data", **new, overwrite=True)
    assert contents(tmp_path / "data") != before
    assert os.listdir(tmp_path) == ["data"]


def test_a_damaged_description_is_replaced_only_when_told_to(tmp_path):
    replace(tmp_path / "data", 1)
    (tmp_path / "data" / dataset.FILE).write_text("{")
    with pytest.raises(UserError, match=r"damaged .* --overwrite"):
        replace(tmp_path / "data", 1)
    assert replace(tmp_path / "data", 1, overwrite=True)
    assert value_in(tmp_path / "data") == 1


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("beside_a_data_set", [False, True])
def test_a_folder_with_other_files_is_refused(tmp_path, overwrite, beside_a_data_set):
    if beside_a_data_set:
        replace(tmp_path / "data", 1)
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"holds what prepare did not write, such as 'thesis.txt'"):
        replace(tmp_path / "data", 2, overwrite=overwrite)
    assert (tmp_path / "data" / "thesis.txt").read_text() == "years of work"
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("name", ["file", "file/data"])
def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--data_dir=") as caught:
        replace(tmp_path / name, 1)
    assert "\n" not in str(caught.value)


def test_where_a_link_points_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk" / "data")
    replace(tmp_path / "data", 1)
    replace(tmp_path / "data", 2, overwrite=True)
    assert (tmp_path / "data").is_symlink()
    assert value_in(tmp_path / "disk" / "data") == 2


def prepare_arrays(data_dir, value, overwrite=False):
    """Prepares a data set in a format of a project's own: one array for each split."""

    def fill(folder):
        splits = {}
        for examples, split in enumerate(dataset.SPLITS, start=3):
            path = folder / f"{split}.npy"
            array = np.lib.format.open_memmap(path, mode="w+", dtype=np.int64, shape=(examples,))
            array[:] = value
            array.flush()
            splits[split] = dataset.Split((dataset.Shard.of(path, examples),))
        return splits

    return preparing.write(
        data_dir,
        fill,
        source="arrays",
        seed=0,
        features={"x": dataset.Feature("int64", ())},
        classes=[],
        statistics=lambda: {"mean": value},
        overwrite=overwrite,
    )


def test_a_data_set_in_another_format_is_written_kept_repaired_and_replaced(tmp_path, capsys):
    data_dir = tmp_path / "data"
    loaded = prepare_arrays(data_dir, 1)
    assert {name: split.examples for name, split in loaded.splits.items()} == {
        **{"train": 3, "validation": 4, "test": 5}
    }
    files = ["dataset.json", "train.npy", "validation.npy", "test.npy"]
    assert loaded.files == files
    assert sorted(os.listdir(data_dir)) == sorted(files)
    before = {path.name: path.stat() for path in data_dir.iterdir()}
    assert prepare_arrays(data_dir, 1) == loaded
    assert "holds this data set already" in capsys.readouterr().out
    assert {path.name: path.stat() for path in data_dir.iterdir()} == before
    with pytest.raises(UserError, match=r"holds another data set; .* --overwrite"):
        prepare_arrays(data_dir, 2)

    (data_dir / "train.npy").write_bytes(b"?")
    with pytest.raises(UserError, match=r"train.npy: holds 1 bytes, dataset.json says"):
        dataset.load(data_dir)
    assert prepare_arrays(data_dir, 1) == loaded

    prepare_arrays(data_dir, 2, overwrite=True)
    np.testing.assert_array_equal(np.load(data_dir / "train.npy", mmap_mode="r"), [2, 2, 2])
    assert os.listdir(tmp_path) == ["data"]

    (data_dir / "more.npy").write_bytes(b"not of this data set")
    with pytest.raises(UserError, match=r"holds what prepare did not write, such as 'more.npy'"):
        prepare_arrays(data_dir, 3, overwrite=True)


def test_a_data_set_that_a_killed_process_of_the_last_release_moved_away_is_put_back(tmp_path):
    replace(tmp_path / "data", 1)
    (tmp_path / ".data.prepare").mkdir()
    (tmp_path / "data").rename(tmp_path / ".data.prepare" / "old")
    assert not replace(tmp_path / "data", 1)
    assert value_in(tmp_path / "data") == 1
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("names", ["indices", "numbers"])
def test_examples_are_stored_in_the_order_of_their_indices(tmp_path, names):
    chosen = {"train": [4, 0, 2], "validation": [1], "test": [3]}
    seen: list[int] = []
    prepared = preparing.prepare(
        tmp_path / "data",
        source="numbers",
        seed=0,
        features={"mask": dataset.Feature("uint8", (2, 2)), **FEATURES},
        classes=[],
        read=lambda i: {"mask": np.full((2, 2), i, np.uint8), "y": np.int64(i)},
        statistics=lambda: {"seen": seen},
        see=lambda example: seen.append(int(example["y"])),
        shards=2,
        overwrite=False,
        **{names: {name: np.array(indices) for name, indices in chosen.items()}},
    )
    assert prepared.statistics == {"seen": chosen["train"]}
    for name, split in prepared.splits.items():
        payloads = records.Reader(prepared.folder, name, split).read(np.arange(split.examples))
        batch = records.parse(payloads, prepared.features)
        assert batch["y"].numpy().tolist() == chosen[name]
        assert batch["mask"].numpy()[:, 1, 1].tolist() == chosen[name]


@pytest.mark.parametrize("failure", [RuntimeError, OSError(28, "No space left on device")])
def test_the_old_data_set_survives_a_failure(tmp_path, failure):
    replace(tmp_path / "data", 1)

    def write(folder):
        write_of(2)(folder)
        raise failure

    with pytest.raises((RuntimeError, UserError)) as caught:
        replacing.replace(tmp_path / "data", write, source="numbers", seed=0, overwrite=True)
    assert isinstance(failure, OSError) == ("No space left on device" in str(caught.value))
    assert value_in(tmp_path / "data") == 1
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("moment", ["before writing", "after writing", "between the renames"])
def test_what_a_killed_process_leaves_is_put_right(tmp_path, moment):
    replace(tmp_path / "data", 1)
    program = f"""
        import os, pathlib, shutil, signal
        from {replacing.__package__} import replacing

        def die(*_):
            os.kill(os.getpid(), signal.SIGKILL)

        def write(folder):
            (folder / "train-00000-of-00001.tfrecord").write_text("half")
            if {moment!r} == "before writing":
                die()
            (folder / "dataset.json").write_text("also half")

        def rename_and_die(self, other):
            os.rename(self, other)
            die()

        replacing._same = lambda *_: False
        pathlib.Path.rename = die if {moment!r} == "after writing" else rename_and_die
        data_dir = {os.fspath(tmp_path / "data")!r}
        replacing.replace(data_dir, write, source="numbers", seed=0, overwrite=True)
    """
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / ".data.prepare").exists()
    assert (tmp_path / "data").exists() == (moment != "between the renames")
    assert not replace(tmp_path / "data", 1)
    assert value_in(tmp_path / "data") == 1
    assert os.listdir(tmp_path) == ["data"]


def test_two_at_a_time_are_refused(tmp_path):
    (tmp_path / ".data.prepare").mkdir()
    with (
        filelock.FileLock(tmp_path / ".data.prepare" / "lock"),
        pytest.raises(UserError, match="another prepare is writing it"),
    ):
        replace(tmp_path / "data", 1)
    assert (tmp_path / ".data.prepare").exists()
