"""What goes wrong on disk ends in one line, and what was saved before can be resumed."""

import os
import shutil
import subprocess
import sys

import pytest

from comparing import assert_one_line_error, assert_same_bits

can_mount = sys.platform == "linux" and os.geteuid() == 0
needs_mount = pytest.mark.skipif(
    not can_mount, reason="a small or read-only disk is made with mount, which only root may do"
)


@pytest.fixture
def disk(tmp_path):
    """Mounts a file system of some size: `disk("size=3m")`; another call changes its size or mode."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted: list[str] = []

    def mount(options):
        change = ["-o", f"remount,{options}" if mounted else options]
        subprocess.run(["mount", "-t", "tmpfs", *change, "tmpfs", str(folder)], check=True)
        mounted.append(options)
        return folder

    yield mount
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def own_data(data_dir, tmp_path):
    """A copy of the prepared example, to be damaged."""
    return shutil.copytree(data_dir, tmp_path / "data")


def flip_a_bit(path):
    contents = bytearray(path.read_bytes())
    contents[40] ^= 1
    path.write_bytes(contents)


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_corrupt_record_is_named_with_its_file(command_line, own_data, tmp_path, split):
    (shard, *_) = sorted(own_data.glob(f"{split}-*.tfrecord"))
    flip_a_bit(shard)
    done = command_line("train", f"--data_dir={own_data}", f"--model_dir={tmp_path / 'run'}")
    assert_one_line_error(done, str(shard), "record 0", ".prepare --source=")


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-5])],
    ids=["missing", "truncated"],
)
def test_a_missing_or_truncated_shard_is_named(command_line, own_data, tmp_path, damage):
    shard = sorted(own_data.glob("train-*.tfrecord"))[-1]
    damage(shard)
    done = command_line("train", f"--data_dir={own_data}", f"--model_dir={tmp_path / 'run'}")
    assert_one_line_error(done, str(shard), ".prepare --source=")


@pytest.mark.slow
@needs_mount
def test_a_full_disk_ends_training_and_with_room_it_goes_on_to_the_same_bits(
    run_command, data_dir, tmp_path, disk, checkpoint
):
    arguments = (
        *(f"--data_dir={data_dir}", "--train_steps=100", "--checkpoint_every=5"),
        *("--keep_checkpoints=100", "--evaluate_every=50"),
    )
    undisturbed = tmp_path / "undisturbed"
    assert run_command("train", *arguments, f"--model_dir={undisturbed}").status == 0
    size = sum(path.stat().st_size for path in undisturbed.rglob("*"))
    run = disk(f"size={size // 2}") / "run"
    full = run_command("train", *arguments, f"--model_dir={run}")
    assert_one_line_error(full, "No space left on device", str(run))
    disk(f"size={2 * size}")
    resumed = run_command("train", *arguments, f"--model_dir={run}")
    assert resumed.status == 0, resumed.err
    assert "training from step 0" not in resumed.err
    assert_same_bits(checkpoint(run, 100), checkpoint(undisturbed, 100))


@pytest.mark.slow
@needs_mount
def test_a_read_only_disk_is_told_in_one_line(run_command, data_dir, disk):
    folder = disk("ro")
    done = run_command("train", f"--data_dir={data_dir}", f"--model_dir={folder / 'run'}")
    assert_one_line_error(done, f"--model_dir={folder / 'run'}", "Read-only file system")
