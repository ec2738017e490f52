import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }} import data, flags
from {{ cookiecutter.__package_name }}.engine import batches
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.examples import open_split
from {{ cookiecutter.__package_name }}.engine.export import restored, saved_model
from {{ cookiecutter.__package_name }}.engine.run import restore
from {{ cookiecutter.__package_name }}.model import Model
from {{ cookiecutter.__package_name }}.vocab import vocab

from comparing import assert_one_line_error

PACKAGE = flags.__package__
AWAY = Path(__file__).parent / "away.py"
FIRST, STEPS = 60, 100
CONSTANT = ("--learning_rate_schedule=constant", "--batch_size=32", "--checkpoint_every=60")


@pytest.fixture(scope="module", params=["cpu", pytest.param("cpu:2", marks=pytest.mark.release)])
def runs(request, data_dir, run_command, tmp_path_factory):
    """Folders of a run stopped after 60 steps, and of the same gone on to 160, on one device and on two."""
    folder = tmp_path_factory.mktemp("runs")
    stopped, whole = folder / "stopped", folder / "whole"
    arguments = (f"--data_dir={data_dir}", f"--devices={request.param}", *CONSTANT)
    done = run_command("train", f"--model_dir={stopped}", f"--train_steps={FIRST}", *arguments)
    assert done.status == 0, done.err
    shutil.copytree(stopped, whole)
    steps = FIRST + STEPS
    done = run_command("train", f"--model_dir={whole}", f"--train_steps={steps}", *arguments)
    assert done.status == 0, done.err
    return stopped, whole


@pytest.fixture(scope="module")
def exported(runs, run_command):
    """Folder of the export of the stopped run."""
    done = run_command("export", f"--model_dir={runs[0]}")
    assert done.status == 0, done.err
    return Path(done.out.splitlines()[-1])


@pytest.fixture(scope="module")
def validation(prepared):
    """All of the validation split."""
    split = open_split(prepared, "validation")
    return {k: v.numpy() for k, v in split.fetch(tf.range(split.examples)).items()}


@pytest.fixture(scope="module")
def away(exported, validation, prepared, run_python, tmp_path_factory):
    """What a process finds that does not know this project."""
    folder = tmp_path_factory.mktemp("away")
    shutil.copy(restored.__file__, folder)
    strategy = tf.distribute.get_strategy()
    training = batches.training(
        open_split(prepared, "train"),
        strategy,
        batch_size=32,
        seed=0,
        first_step=FIRST,
        augment=data.augment,
    )
    steps: list[Any] = list(itertools.islice(training, STEPS))
    inputs: dict[str, Any] = {
        f"steps {name}": [step[name] for step in steps] for name in (vocab.x, vocab.y)
    }
    inputs |= {**validation, "dummy": np.eye(10, dtype=np.float32)}
    np.savez(folder / "inputs.npz", **inputs)
    done = run_python(
        *("-I", AWAY, PACKAGE, folder, exported, folder / "inputs.npz", folder / "outputs.npz"),
        cwd=folder,
    )
    assert done.status == 0, done.err
    assert "WARNING" not in done.err.replace("WARNING: All log messages before", "")
    with np.load(folder / "outputs.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def model(runs, prepared):
    """The model with the weights of the stopped run."""
    model = Model.for_dataset(prepared)
    restore.restore_run(str(runs[0]), model)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 64])
def test_predictions_away_from_home_are_those_of_the_checkpoint(away, model, validation, count):
    expected = model.inference(tf.constant(validation["x"][:count])).numpy()
    assert np.abs(away[f"inference {count}"] - expected).max() <= 1e-6


@pytest.mark.slow
def test_the_loss_is_the_one_that_evaluate_prints(away, runs, command_line):
    done = command_line("evaluate", f"--model_dir={runs[0]}", "--devices=cpu")
    assert done.status == 0, done.err
    figures = json.loads(done.out.splitlines()[-1])
    assert away["loss"].mean(dtype=np.float64) == pytest.approx(figures["loss"], abs=1e-6)


@pytest.mark.slow
def test_100_steps_away_from_home_equal_100_steps_at_home(away, runs, checkpoint):
    before, after = checkpoint(runs[0], FIRST), checkpoint(runs[1], FIRST + STEPS)
    found = {
        name.removeprefix("variable "): value
        for name, value in away.items()
        if name.startswith("variable ")
    }
    assert found.keys() == after.keys() - {vocab.state}
    assert found.pop(vocab.global_step) == FIRST + STEPS
    assert max(np.abs(after[name] - before[name]).max() for name in found) > 0.1
    assert max(np.abs(after[name] - found[name]).max() for name in found) <= 1e-5
    assert away["losses"][-10:].mean() < 0.7 * away["losses"][:10].mean()


@pytest.mark.slow
def test_an_intermediate_tensor_is_fetched_and_fed_by_its_name(away, validation):
    def softmax(logits):
        exponentials = np.exp(logits)
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    assert away["shape of logits"].tolist() == [10]
    assert away["logits"].shape == (len(validation["x"]), 10)
    assert away["inference"] == pytest.approx(softmax(away["logits"]), abs=1e-6)
    assert away["inference of dummy"] == pytest.approx(softmax(np.eye(10)), abs=1e-6)


@pytest.mark.slow
def test_the_signature_tells_what_a_client_has_to_know(exported, prepared):
    signature = json.loads((exported / "signature.json").read_text())
    assert signature == {
        "inputs": {"x": {"dtype": "uint8", "shape": [None, 8, 8, 1]}},
        "targets": {"y": {"dtype": "int64", "shape": [None]}},
        "outputs": {"inference": {"dtype": "float32", "shape": [None, 10]}},
        "classes": [str(digit) for digit in range(10)],
        "functions": ["inference", "loss", "optimize"],
        "global_step": FIRST,
        "checkpoint": "newest",
        "averages": False,
        "flags": {"class_weights": False, "dropout_rate": 0.3, "seed": 0, "trainable": ""},
        "data": prepared.fingerprint,
    }


@pytest.mark.slow
def test_the_tool_of_tensorflow_shows_the_names_and_predicts(
    exported, away, validation, run_python, tmp_path
):
    tool = "tensorflow.python.tools.saved_model_cli"
    shown = run_python("-m", tool, "show", "--dir", exported, "--all").out
    assert "inputs['x'] tensor_info:" in shown
    assert "outputs['inference'] tensor_info:" in shown
    for name in ("inference", "loss", "optimize"):
        assert f"Function Name: '{name}'" in shown
    np.save(tmp_path / "x.npy", validation["x"][:3])
    done = run_python(
        *("-m", tool, "run", "--dir", exported, "--tag_set", "serve"),
        *("--signature_def", "serving_default", "--inputs", f"x={tmp_path}/x.npy"),
        *("--outdir", tmp_path),
    )
    assert done.status == 0, done.err
    assert np.abs(np.load(tmp_path / "inference.npy") - away["inference 3"]).max() <= 1e-6


@pytest.mark.slow
def test_training_goes_on_from_an_export(exported, data_dir, command_line, tmp_path, checkpoint):
    run = tmp_path / "run"
    arguments = (f"--data_dir={data_dir}", f"--model_dir={run}", "--train_steps=1")
    done = command_line(
        "train",
        *arguments,
        f"--warm_start_from={exported}",
        "--learning_rate=0",
        "--warmup_steps=0",
    )
    assert done.status == 0, done.err
    trained = checkpoint(exported.parents[1], FIRST)
    taken = checkpoint(run, 1)
    for name in [name for name in taken if name.endswith(("kernel", "bias", "gamma", "beta"))]:
        assert np.array_equal(taken[name], trained[name]), name


@pytest.mark.slow
def test_exports_are_numbered_and_a_second_leaves_the_first(trained, command_line, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "export" / ".writing").mkdir(parents=True)  # left by a process that was killed
    for number in (1, 2):
        done = command_line("export", f"--model_dir={run}", "--checkpoint=best")
        assert done.status == 0, done.err
        assert done.out == f"{run}/export/{number}\n"
        written = run / "export" / str(number)
        contents = sorted(path.relative_to(written).as_posix() for path in written.rglob("*"))
        assert contents == [
            *("assets", "fingerprint.pb", "saved_model.pb", "signature.json", "variables"),
            *("variables/variables.data-00000-of-00001", "variables/variables.index"),
        ]
    assert sorted(path.name for path in (run / "export").iterdir()) == [".lock", "1", "2"]


def test_a_run_that_does_not_exist_is_refused(command_line, tmp_path):
    done = command_line("export", f"--model_dir={tmp_path}/none")
    assert_one_line_error(done, "no flags.txt there")


class Restless(tf.Module):
    """A model that predicts something else each time."""

    def __init__(self):
        super().__init__()
        self.network = self.optimizer = Model()  # for their variables
        self.network, self.optimizer = self.network.network, self.optimizer.optimizer

    def inference(self, x):
        return x + tf.cast(tf.timestamp() % 1e4, tf.float32)

    def loss(self, x, y=None):
        return x

    def optimize(self, x, y=None):
        return dict.fromkeys((vocab.loss, vocab.learning_rate), x)


BATCH = {vocab.x: tf.TensorSpec([None], tf.float32)}


@pytest.mark.slow
def test_an_export_that_predicts_something_else_is_deleted(tmp_path):
    with pytest.raises(UserError, match=r"the export's inference differs by .* it was deleted"):
        saved_model.write(tmp_path, Restless(), BATCH, sample=tf.zeros([3]), classes=[], about={})
    assert saved_model.numbers(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_two_exports_do_not_get_in_each_others_way(tmp_path):
    with (
        filelock.FileLock(tmp_path / ".lock"),
        pytest.raises(UserError, match="another export is being written"),
    ):
        saved_model.write(tmp_path, Restless(), BATCH, sample=tf.zeros([3]), classes=[], about={})
