"""Trains, stops, resumes, evaluates, predicts, exports and trains on, in one process: starting one takes longest.

    python driver.py <page> <package> <devices> <folder with the page's commands and script.py>

It runs in the project's folder, first with one device, then with several, whose run is compared with that of one.
"""

import contextlib
import importlib
import io
import json
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from absl.testing import flagsaver

STEPS = 20
PERIODS = ("--checkpoint_every=10", "--summary_every=5", "--evaluate_every=10")
# A schedule that depends on the length of training would make another run of one that is made longer.
CONSTANT = ("--learning_rate_schedule=constant", "--warmup_steps=0")
OVERRIDDEN = ("--model_dir", "--devices", "--train_steps")
CLOSE = 1e-5


class Tried:
    """A project after the edit of a page, and what its commands wrote; what a page's case gets."""

    def __init__(self, package: str, devices: str, commands: list[str]) -> None:
        self.package, self.devices = package, devices
        self.commands = [command for line in commands if (command := self._parsed(line))]
        self.results: dict[str, dict[str, Any]] = {}

    def _parsed(self, line: str) -> tuple[str, list[str]] | None:
        words = shlex.split(line)
        prefix = f"{self.package}."
        return next(
            (
                (w.removeprefix(prefix), words[i + 1 :])
                for i, w in enumerate(words)
                if w.startswith(prefix)
            ),
            None,
        )

    def flags(self, name: str) -> list[str]:
        """Returns the flags of the page's first command of this name, without where and how long."""
        found = next((given for command, given in self.commands if command == name), [])
        return [flag for flag in found if flag.partition("=")[0] not in OVERRIDDEN]

    def module(self, name: str) -> Any:
        """Returns a module of the package."""
        return importlib.import_module(f"{self.package}.{name}")

    def run(self, command: str, *given: str) -> dict[str, Any]:
        """Runs a command of the package as its command line would; returns its line of JSON, if it prints one."""
        main = self.module(command).main
        output = io.StringIO()
        with flagsaver.flagsaver(), contextlib.redirect_stdout(output):
            flags.FLAGS.unparse_flags()
            flags.FLAGS([command, *given])
            status = main([command])
        assert not status, f"{command} {given}: {status}"
        lines = output.getvalue().splitlines()
        self.results[command] = json.loads(lines[-1]) if lines and lines[-1][:1] == "{" else {}
        return self.results[command]

    def train(self, model_dir: str, *given: str, steps: int = STEPS) -> dict[str, Any]:
        """Trains with the page's flags."""
        place = (f"--model_dir={model_dir}", f"--devices={self.devices}", f"--train_steps={steps}")
        return self.run("train", *PERIODS, *CONSTANT, *self.flags("train"), *given, *place)

    def variables(self, model_dir: str, step: int = STEPS) -> dict[str, np.ndarray]:
        """Returns what a checkpoint of a run holds, by key."""
        import tensorflow as tf

        reader = tf.train.load_checkpoint(f"{model_dir}/checkpoints/ckpt-{step}")
        return {
            key: np.asarray(reader.get_tensor(key)) for key in reader.get_variable_to_shape_map()
        }

    def events(self, model_dir: str) -> dict[str, dict[int, Any]]:
        """Returns the summary values of training by tag and step."""
        from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

        found: dict[str, dict[int, Any]] = {}
        for path in sorted(Path(model_dir).glob("train/events*")):
            for event in LegacyEventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    found.setdefault(value.tag, {})[event.step] = value
        return found

    @staticmethod
    def histogram(value: Any) -> np.ndarray:
        """Returns the buckets of a histogram: left edge, right edge and count of each."""
        import tensorflow as tf

        return tf.make_ndarray(value.tensor)


def one_device(tried: Tried) -> None:
    """All commands; a run that is stopped ends with the same bits."""
    tried.train("runs/stopped", steps=STEPS // 2)
    tried.train("runs/stopped")
    tried.train("runs/whole")
    whole, stopped = tried.variables("runs/whole"), tried.variables("runs/stopped")
    assert whole.keys() == stopped.keys()
    for key, value in whole.items():
        if "state" not in key.split("/")[0]:
            assert value.tobytes() == stopped[key].tobytes(), f"{key} differs after a stop"
    place = ("--model_dir=runs/whole", "--devices=cpu")
    evaluated = tried.run("evaluate", *place, *tried.flags("evaluate"), "--split=validation")
    Path("evaluated.json").write_text(json.dumps(evaluated))
    tried.run("export", "--model_dir=runs/whole")
    train_on(tried)


def train_on(tried: Tried) -> None:
    """The export goes on training as the code does, and predicts the same."""
    import tensorflow as tf

    flags_of, command = tried.module("flags"), tried.module("engine.command")
    with command.settings((*flags_of.TRAIN, flags_of.CHECKPOINT), {"model_dir": "runs/whole"}):
        run = tried.module("run").open_with_flags(optimizer=True)
    restored = tried.module("engine.export.restored")
    model = restored.load("runs/whole/export/1")
    batch = run.examples("train").fetch(tf.range(64, dtype=tf.int64))
    optimize = tf.function(run.model.optimize)
    for _ in range(3):
        expected, found = optimize(**batch)["loss"], model.optimize(**batch)["loss"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    predicted = model.inference(batch["x"])["inference"]
    np.testing.assert_allclose(predicted, run.model.inference(batch["x"]), rtol=CLOSE, atol=CLOSE)


def several_devices(tried: Tried) -> None:
    """The same training as on one device, and the same evaluation."""
    tried.train("runs/several")
    one, several = tried.variables("runs/whole"), tried.variables("runs/several")
    assert one.keys() == several.keys()
    for key, value in one.items():
        if np.issubdtype(value.dtype, np.floating):
            np.testing.assert_allclose(several[key], value, atol=CLOSE, rtol=0, err_msg=key)
    place = ("--model_dir=runs/whole", f"--devices={tried.devices}")
    found = tried.run("evaluate", *place, *tried.flags("evaluate"), "--split=validation")
    expected = json.loads(Path("evaluated.json").read_text())
    for name, value in expected.items():
        if isinstance(value, float):
            np.testing.assert_allclose(found[name], value, atol=CLOSE, err_msg=name)


def main(page: str, package: str, devices: str, folder: str) -> None:
    """Tries a page's edit on some devices."""
    tried = Tried(package, devices, Path(folder, "commands").read_text().splitlines())
    case = runpy.run_path(str(Path(__file__).parent / f"{page.replace('-', '_')}.py"))
    if devices == "cpu":
        if case.get("PREPARES", True):
            tried.run("prepare", *tried.flags("prepare"))
        case.get("before", lambda tried: None)(tried)
        runpy.run_path(str(Path(folder, "script.py")))
        one_device(tried)
    else:
        several_devices(tried)
    case["check"](tried)


if __name__ == "__main__":
    main(*sys.argv[1:])
