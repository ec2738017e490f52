import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from {{ cookiecutter.__package_name }} import flags

from comparing import assert_one_line_error, assert_same_bits

PACKAGE = flags.__package__
PRESETS = Path(flags.__file__).parents[2] / "presets"


def result(done):
    """Returns the last line that a command printed, which is JSON."""
    return json.loads(done.out.splitlines()[-1])


def newest(run):
    steps = [int(p.stem.removeprefix("ckpt-")) for p in (run / "checkpoints").glob("*.index")]
    return max(steps, default=None)


def largest_difference(first, second):
    assert first.keys() == second.keys()
    return max(
        np.max(np.abs(first[key].astype(float) - second[key])) for key in first if "/" in key
    )


def test_the_last_line_printed_is_the_result(trained):
    last = json.loads((trained / "stdout").read_text().splitlines()[-1])
    assert list(last) == [
        *("global_step", "train_loss", "validation_loss", "validation_error", "best_error"),
        *("best_step", "examples_per_second", "loss", "error"),
    ]
    assert (last["loss"], last["error"]) == (last["train_loss"], last["validation_error"])
    assert last["global_step"] == 60
    assert min(last["train_loss"], last["validation_loss"]) > 0
    assert last["examples_per_second"] > 10


def test_losses_and_errors_of_the_result_are_those_of_the_curves(trained, event_values):
    last = json.loads((trained / "stdout").read_text().splitlines()[-1])
    curves = {
        tag: {
            step: float(value)
            for name, step, value in event_values(trained / "validation")
            if name == tag
        }
        for tag in ("loss", "error")
    }
    assert np.float32(last["validation_loss"]) == curves["loss"][60]
    assert np.float32(last["validation_error"]) == curves["error"][60]
    assert np.float32(last["best_error"]) == min(curves["error"].values())
    assert curves["error"][last["best_step"]] == min(curves["error"].values())


def test_progress_is_plain_lines_where_there_is_no_terminal(trained):
    err = (trained / "stderr").read_text()
    assert "training from step 0 to 60" in err
    assert "validation | step: 25, loss: " in err
    assert "\r" not in err


def modified(run):
    """Returns when each file of a run was last written."""
    files = [path for path in run.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path: path.stat().st_mtime_ns for path in files}


def test_a_finished_run_is_left_alone_and_says_so(
    command_line, trained, data_dir, short_run, caplog
):
    before = modified(trained)
    done = command_line("train", f"--data_dir={data_dir}", f"--model_dir={trained}", *short_run)
    assert done.status == 0
    first = json.loads((trained / "stdout").read_text().splitlines()[-1])
    assert result(done) == {**first, "examples_per_second": 0}
    assert "is finished at step 60: a larger --train_steps or --epochs goes on" in caplog.text
    assert modified(trained) == before


def test_the_flag_file_of_a_run_repeats_it_bit_by_bit(command_line, trained, tmp_path, checkpoint):
    again = tmp_path / "again"
    done = command_line("train", f"--flagfile={trained}/flags.txt", f"--model_dir={again}")
    assert done.status == 0, done.err
    assert_same_bits(checkpoint(again, 60), checkpoint(trained, 60))


def test_two_devices_train_like_one(
    command_line, trained, data_dir, short_run, tmp_path, checkpoint
):
    run = tmp_path / "two"
    done = command_line(
        "train", f"--data_dir={data_dir}", f"--model_dir={run}", "--devices=cpu:2", *short_run
    )
    assert done.status == 0, done.err
    assert largest_difference(checkpoint(run, 60), checkpoint(trained, 60)) <= 1e-5
    # No example is judged otherwise where the error counts them; an RMSE is rounded otherwise.
    of_one = json.loads((trained / "stdout").read_text())["validation_error"]
    assert result(done)["validation_error"] == pytest.approx(of_one, abs=1e-5)


def start(*arguments):
    """Starts `train` in a process of its own and does not wait for it."""
    return subprocess.Popen(
        [sys.executable, "-m", f"{PACKAGE}.train", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_signal_saves_and_exits_with_42_and_the_same_command_goes_on(
    data_dir, tmp_path, command_line
):
    run = tmp_path / "run"
    arguments = (f"--data_dir={data_dir}", f"--model_dir={run}", "--steps_per_loop=10")
    process = start(*arguments, "--train_steps=1000000", "--checkpoint_every=30")
    try:
        wait_for(lambda: newest(run), process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 42, err
    stopped_at = json.loads(out)["global_step"]
    assert stopped_at == newest(run)
    assert f"stopped at step {stopped_at}; the same command goes on" in err
    done = command_line("train", *arguments, f"--train_steps={stopped_at + 20}")
    assert done.status == 0, done.err
    assert result(done)["global_step"] == stopped_at + 20


def long_run(data_dir, run):
    return (
        *(f"--data_dir={data_dir}", f"--model_dir={run}", "--train_steps=3000"),
        *("--steps_per_loop=5", "--checkpoint_every=50", "--evaluate_every=500"),
    )


@pytest.fixture(scope="module")
def whole(data_dir, run_command, tmp_path_factory):
    """Folder of a run of 3000 steps that was never stopped."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    done = run_command("train", *long_run(data_dir, run))
    assert done.status == 0, done.err
    return run


@pytest.mark.parametrize(
    ("name", "times"),
    [
        *(pytest.param(name, 2, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGKILL")),
        *(pytest.param(name, 12, marks=pytest.mark.release) for name in ("SIGINT", "SIGKILL")),
    ],
)
def test_a_run_that_is_stopped_anywhere_ends_with_the_bits_of_one_that_was_not(
    data_dir, tmp_path, run_command, checkpoint, whole, name, times
):
    run, between = tmp_path / "stopped", 600 // times
    statuses = []
    for _ in range(times):
        process = start(*long_run(data_dir, run))
        begun = newest(run) or 0
        try:
            wait_for(lambda begun=begun: (newest(run) or 0) > begun + between, process)
            process.send_signal(signal.Signals[name])
            process.communicate(timeout=60)
        finally:
            process.kill()
        statuses.append(process.returncode)
    assert statuses == [-signal.SIGKILL if name == "SIGKILL" else 42] * times
    last = run_command("train", *long_run(data_dir, run))
    assert last.status == 0, last.err
    assert_same_bits(checkpoint(run, 3000), checkpoint(whole, 3000))


def test_no_data_yet_says_which_command_to_run(command_line, tmp_path):
    done = command_line("train", f"--data_dir={tmp_path}/none", f"--model_dir={tmp_path}/run")
    assert_one_line_error(
        done,
        f"--data_dir={tmp_path}/none: no data there yet",
        f"python -m {PACKAGE}.prepare --source=... --data_dir={tmp_path}/none",
    )
    assert not (tmp_path / "run").exists()


def test_a_data_set_that_disagrees_with_its_shards_is_refused(command_line, data_dir, tmp_path):
    data = shutil.copytree(data_dir, tmp_path / "data")
    shard = data / "train-00001-of-00004.tfrecord"
    os.truncate(shard, shard.stat().st_size - 1)
    done = command_line("train", f"--data_dir={data}", f"--model_dir={tmp_path}/run")
    assert_one_line_error(done, str(shard), "dataset.json says")


def test_an_empty_split_is_refused(command_line, data_dir, tmp_path):
    data = shutil.copytree(data_dir, tmp_path / "data")
    description = json.loads((data / "dataset.json").read_text())
    description["splits"]["validation"] = {"examples": 0, "shards": []}
    (data / "dataset.json").write_text(json.dumps(description))
    done = command_line("train", f"--data_dir={data}", f"--model_dir={tmp_path}/run")
    assert_one_line_error(done, "dataset.json", "'validation' is empty")


def test_a_folder_that_cannot_be_written_is_refused(command_line, data_dir, tmp_path):
    (tmp_path / "file").write_text("")
    done = command_line("train", f"--data_dir={data_dir}", f"--model_dir={tmp_path}/file/run")
    assert_one_line_error(done, f"--model_dir={tmp_path}/file/run: cannot be written")


@pytest.mark.slow
def test_a_batch_that_the_devices_do_not_divide_is_refused(run_command, data_dir, tmp_path):
    done = run_command(
        "train",
        *(f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run"),
        *("--devices=cpu:4", "--batch_size=30"),
    )
    assert_one_line_error(done, "--batch_size=30 cannot be divided among 4 devices", "such as 32")


def test_a_run_of_another_model_is_refused(command_line, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    done = command_line(
        "train",
        *(f"--flagfile={trained}/flags.txt", f"--model_dir={run}"),
        *("--optimizer=adam", "--train_steps=70"),
    )
    assert_one_line_error(done, "belongs to another model", "optimizer/")
    assert (run / "flags.txt").read_text() == (trained / "flags.txt").read_text()


def test_a_loss_that_explodes_ends_training_and_names_the_step(command_line, data_dir, tmp_path):
    done = command_line(
        "train",
        *(f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run"),
        *("--learning_rate=1e30", "--warmup_steps=0", "--train_steps=50"),
    )
    assert_one_line_error(done, "error: step ", "--learning_rate")


def test_the_debug_preset_runs_everything_quickly(command_line, data_dir, tmp_path):
    done = command_line(
        "train",
        *(f"--flagfile={PRESETS}/debug.txt", f"--data_dir={data_dir}"),
        f"--model_dir={tmp_path}/run",
    )
    assert done.status == 0, done.err
    assert result(done)["global_step"] <= 50
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {
        *("checkpoints", "best", "train", "validation", "flags.txt"),
    }


@pytest.mark.slow
def test_the_operation_that_makes_the_first_nan_is_named_on_request(
    run_command, data_dir, tmp_path
):
    done = run_command(
        "train",
        *(f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run", "--check_numerics"),
        *("--learning_rate=1e30", "--warmup_steps=0", "--train_steps=50"),
    )
    assert_one_line_error(done, "--check_numerics", " made ", ".py, line ")


@pytest.mark.slow
def test_bfloat16_learns_and_keeps_its_weights_in_float32(
    run_command, data_dir, tmp_path, checkpoint
):
    done = run_command(
        "train",
        *(f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run", "--precision=bfloat16"),
        "--train_steps=200",
    )
    assert done.status == 0, done.err
    assert result(done)["validation_error"] < 0.2
    saved = checkpoint(tmp_path / "run", 200)
    kernels = [value.dtype for key, value in saved.items() if key.endswith("/kernel")]
    assert kernels
    assert set(kernels) == {np.dtype(np.float32)}


@pytest.mark.slow
def test_the_model_can_overfit_one_batch(command_line, data_dir, tmp_path):
    done = command_line(
        "train",
        *(f"--flagfile={PRESETS}/overfit_one_batch.txt", f"--data_dir={data_dir}"),
        f"--model_dir={tmp_path}/run",
    )
    assert done.status == 0, done.err
    assert result(done)["train_loss"] < 0.01
