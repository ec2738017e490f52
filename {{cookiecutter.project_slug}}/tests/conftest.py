"""What several test modules share: prepared data, a trained run, and ways to run a command.

Importing TensorFlow takes seconds, so a test runs commands in its own process where it can (`command_line`), on one
device or two, and in a new one (`run_command`) where it must: more devices, signals, what a fresh process does.
"""

import importlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from absl import flags as absl_flags
from absl.testing import flagsaver

from {{ cookiecutter.__package_name }} import flags, prepare
from {{ cookiecutter.__package_name }}.engine import command, dataset
from {{ cookiecutter.__package_name }}.engine.system import startup

PACKAGE = flags.__package__
ROOT = Path(__file__).parent.parent

# Tests compare bits, and several devices are virtual: all of them run on the CPU.
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
startup.import_tensorflow()


def _have_two_devices():
    """Makes the CPU two devices, as `--devices=cpu:2` does: that has to come before anything uses one."""
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


_have_two_devices()


def environment():
    """Returns the variables for a process that imports what this one can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


class Finished(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """Folder of the prepared example that `--source` names unless it is given."""
    folder = tmp_path_factory.mktemp("prepared") / "data"
    with flagsaver.flagsaver():
        absl_flags.FLAGS(["prepare", f"--data_dir={folder}"])
        prepare.main(["prepare"])
    return folder


@pytest.fixture(scope="session")
def prepared(data_dir):
    """The prepared example, as `dataset.load` returns it."""
    return dataset.load(data_dir)


@pytest.fixture(scope="session")
def run_python():
    """Runs Python with arguments in a process of its own."""

    def run(*arguments, cwd=None):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def run_command(run_python):
    """Runs a command of the project in a process of its own."""

    def run(name, *arguments, cwd=None):
        return run_python("-m", f"{PACKAGE}.{name}", *arguments, cwd=cwd)

    return run


@pytest.fixture(scope="session")
def run_workers(run_python):
    """Runs a command with several workers on this machine: `run_workers(2, "train", ...)`."""

    def run(count, name, *arguments):
        command = (sys.executable, "-m", f"{PACKAGE}.{name}", *arguments)
        return run_python(str(ROOT / "launch" / "local_workers"), str(count), *command)

    return run


@pytest.fixture
def start_workers():
    """Starts workers as processes of their own, to be killed one by one; all are when the test ends.

    `start_workers(2, "train", *arguments, each=[(), ("--more",)], only=[1])`
    """
    started = []

    def start(count, name, *arguments, each=None, only=None):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        workers = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
        for s in sockets:
            s.close()
        for index in range(count) if only is None else only:
            described = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            started.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        f"{PACKAGE}.{name}",
                        *arguments,
                        *(each or [()] * count)[index],
                    ],
                    env={**environment(), "TF_CONFIG": json.dumps(described)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        return list(started)

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def saved_flags():
    """Puts all flags back as they were when the test ends."""
    with flagsaver.flagsaver():
        yield


@pytest.fixture
def command_line(capfd, monkeypatch):
    """Runs a command with its command line in this process; flags are put back afterwards."""

    def run(name, *arguments):
        module = importlib.import_module(f"{PACKAGE}.{name}")
        monkeypatch.setattr(sys, "argv", [module.__file__, *arguments])
        capfd.readouterr()
        with flagsaver.flagsaver():
            absl_flags.FLAGS.unparse_flags()
            with pytest.raises(SystemExit) as ended:
                command.run(module.main, getattr(flags, name.upper()))
        code = ended.value.code
        out, err = capfd.readouterr()
        # TensorFlow's first words on a machine without a GPU
        err = re.sub(r"^[EW]0000 .*\n", "", err, flags=re.MULTILINE)
        return Finished(code if isinstance(code, int) else int(code is not None), out, err)

    return run


STEPS = 60
SHORT_RUN = (
    "--augment",
    f"--train_steps={STEPS}",
    "--evaluate_every=25",
    "--checkpoint_every=20",
    "--summary_every=10",
    "--steps_per_loop=7",
    "--warmup_steps=10",
    "--clip_norm=0.5",
    "--keep_checkpoints=5",
)


@pytest.fixture(scope="session")
def short_run():
    """The flags of `trained`, without its folders."""
    return SHORT_RUN


@pytest.fixture(scope="session")
def trained(data_dir, run_command, tmp_path_factory):
    """Folder of a run that `train` made in a process of its own, never stopped; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "trained"
    done = run_command("train", f"--data_dir={data_dir}", f"--model_dir={folder}", *SHORT_RUN)
    assert done.status == 0, done.err
    (folder / "stdout").write_text(done.out)
    (folder / "stderr").write_text(done.err)
    return folder


@pytest.fixture(scope="session")
def checkpoint():
    """Reads a checkpoint with TensorFlow's own reader: `checkpoint(folder, step)`, arrays by key."""
    import tensorflow as tf

    def read(run, step, folder="checkpoints"):
        reader = tf.train.load_checkpoint(str(run / folder / f"ckpt-{step}"))
        return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}

    return read


@pytest.fixture(scope="session")
def event_values():
    """Reads the event files in a folder with TensorBoard's reader: (tag, step, value) in order."""
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    def read(folder):
        return [
            (value.tag, event.step, tf.make_ndarray(value.tensor))
            for path in sorted(folder.glob("events.out.tfevents.*"))
            for event in EventFileLoader(str(path)).Load()
            for value in event.summary.value
        ]

    return read
