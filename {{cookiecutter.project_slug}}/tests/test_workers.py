"""Several processes that train together: what happens when one dies, is stopped, never comes or disagrees."""

import signal
import time

import pytest

from {{ cookiecutter.__package_name }}.engine.command import STOPPED

from comparing import assert_same_bits

pytestmark = pytest.mark.slow

STEPS = 200
FLAGS = (
    *(f"--train_steps={STEPS}", "--checkpoint_every=20", "--evaluate_every=100"),
    *("--keep_checkpoints=100", "--steps_per_loop=10", "--cluster_timeout=20"),
)


@pytest.fixture(scope="module")
def undisturbed(run_workers, data_dir, tmp_path_factory):
    """A run of two workers that nothing happened to."""
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    done = run_workers(2, "train", f"--data_dir={data_dir}", f"--model_dir={folder}", *FLAGS)
    assert done.status == 0, done.err
    return folder


@pytest.fixture
def arguments(data_dir, tmp_path):
    return (f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run", *FLAGS)


def wait_for_a_checkpoint(run, processes):
    deadline = time.monotonic() + 300
    while not list((run / "checkpoints").glob("*.index")):
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)


@pytest.mark.parametrize("victim", [0, 1], ids=["chief", "other"])
def test_a_worker_that_is_killed_ends_the_other_and_the_rerun_has_the_same_bits(
    start_workers, run_workers, undisturbed, arguments, checkpoint, tmp_path, victim
):
    processes = start_workers(2, "train", *arguments)
    wait_for_a_checkpoint(tmp_path / "run", processes)
    processes[victim].send_signal(signal.SIGKILL)
    began = time.monotonic()
    _, err = processes[1 - victim].communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert processes[1 - victim].returncode not in (0, STOPPED)
    assert f"worker {victim} (127.0.0.1:" in err
    assert "Traceback" not in err
    done = run_workers(2, "train", *arguments)
    assert done.status == 0, done.err
    for step in (STEPS - 20, STEPS):
        assert_same_bits(checkpoint(tmp_path / "run", step), checkpoint(undisturbed, step))


def test_a_signal_to_one_worker_stops_all_after_the_same_step_and_the_rerun_has_the_same_bits(
    start_workers, run_workers, undisturbed, arguments, checkpoint, tmp_path
):
    processes = start_workers(2, "train", *arguments)
    wait_for_a_checkpoint(tmp_path / "run", processes)
    processes[1].send_signal(signal.SIGTERM)
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == STOPPED, err
    done = run_workers(2, "train", *arguments)
    assert done.status == 0, done.err
    assert_same_bits(checkpoint(tmp_path / "run", STEPS), checkpoint(undisturbed, STEPS))


def test_a_run_of_two_workers_goes_on_with_one_process(
    run_workers, run_command, arguments, checkpoint, tmp_path
):
    assert run_workers(2, "train", *arguments, "--train_steps=40").status == 0
    assert run_command("train", *arguments, "--train_steps=60").status == 0
    assert checkpoint(tmp_path / "run", 60)["global_step"] == 60


def test_the_chief_alone_writes_curves_and_the_last_line(
    undisturbed, event_values, run_workers, arguments
):
    for split in ("train", "validation"):
        assert len(list((undisturbed / split).iterdir())) == 1
        read = [(tag, step) for tag, step, _ in event_values(undisturbed / split)]
        assert len(read) == len(set(read)) > 0
    done = run_workers(2, "train", *arguments, "--train_steps=20")
    assert done.out.count('"global_step": 20') == 1


def test_a_worker_that_never_arrives_is_named(start_workers, arguments):
    [process] = start_workers(2, "train", *arguments, "--cluster_timeout=3", only=[1])
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith("error: worker 0 (127.0.0.1:")
    assert "did not arrive within 3 s (--cluster_timeout)" in err


def test_workers_with_other_flags_are_refused_before_training(start_workers, arguments, tmp_path):
    processes = start_workers(2, "train", *arguments, each=[(), ("--learning_rate=0.2",)])
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "has --learning_rate=0.2" in err
        assert "Traceback" not in err
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_workers_with_other_data_are_refused_before_training(
    start_workers, run_command, arguments, tmp_path
):
    other = tmp_path / "other"
    assert run_command("prepare", "--seed=1", f"--data_dir={other}").status == 0
    processes = start_workers(2, "train", *arguments, each=[(), (f"--data_dir={other}",)])
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "has data with the fingerprint" in err


def test_a_second_run_in_the_folder_is_refused_by_all_workers(
    start_workers, run_workers, arguments, tmp_path
):
    processes = start_workers(2, "train", *arguments)
    wait_for_a_checkpoint(tmp_path / "run", processes)
    done = run_workers(2, "train", *arguments)
    assert done.status == 1
    assert "another process trains there" in done.err
