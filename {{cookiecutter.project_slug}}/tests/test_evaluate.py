import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss

from {{ cookiecutter.__package_name }}.engine import records

from comparing import assert_one_line_error


def result(done):
    assert done.status == 0, done.err
    return json.loads(done.out.splitlines()[-1])


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """A trained run that may be written to."""
    return shutil.copytree(trained, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def examples(digits):
    """Images and classes of a split."""

    def read(split):
        reader = records.Reader(digits.folder, split, digits.splits[split])
        serialized = reader.read(np.arange(digits.splits[split].examples))
        batch = records.parse(serialized, digits.features)
        return batch["x"].numpy(), batch["y"].numpy()

    return read


def predicted(weights, statistics, x):
    """Returns probabilities, computed from a checkpoint's arrays in plain numpy."""

    def normalized(h, i):
        gamma, beta, mean, variance = (
            weights[f"inference/normalization_{i}/{name}"].astype(float)
            for name in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        return gamma * (h - mean) / np.sqrt(variance + 1e-3) + beta

    def convolved(h, i):
        padded = np.pad(h, [(0, 0), (1, 1), (1, 1), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        kernel = weights[f"inference/conv_{i}/kernel"].astype(float)
        return np.einsum("nhwcij,ijco->nhwo", windows, kernel, optimize=True)

    def dense(h, name):
        kernel, bias = (weights[f"inference/{name}/{part}"] for part in ("kernel", "bias"))
        return h @ kernel.astype(float) + bias

    def silu(h):
        return h / (1 + np.exp(-h))

    h = (x - np.array(statistics["mean"])) / np.array(statistics["stddev"])
    for i in (1, 2):
        h = silu(normalized(convolved(h, i), i))
        n, height, width, channels = h.shape
        h = h.reshape(n, height // 2, 2, width // 2, 2, channels).mean(axis=(2, 4))
    logits = dense(silu(dense(h.reshape(len(h), -1), "dense_1")), "logits")
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("split", "batch_size"), [("test", 270), ("test", 64), ("validation", 7), ("train", 1000)]
)
def test_figures_are_those_of_scikit_learn(
    command_line, run, checkpoint, digits, examples, split, batch_size
):
    done = command_line(
        "evaluate", f"--model_dir={run}", f"--split={split}", f"--batch_size={batch_size}"
    )
    figures = result(done)
    x, y = examples(split)
    probabilities = predicted(checkpoint(run, 60), digits.statistics, x)
    classes = probabilities.argmax(axis=1)
    assert figures["split"] == split
    assert figures["global_step"] == 60
    assert figures["examples"] == len(y)
    assert figures["accuracy"] == pytest.approx(accuracy_score(y, classes), abs=1e-9)
    assert figures["error"] == pytest.approx(1 - accuracy_score(y, classes), abs=1e-9)
    assert figures["confusion"] == confusion_matrix(y, classes).tolist()
    assert figures["loss"] == pytest.approx(log_loss(y, probabilities), abs=1e-5)


def test_figures_are_written_into_the_run_and_nothing_has_to_be_repeated(command_line, run):
    figures = result(command_line("evaluate", f"--model_dir={run}"))
    assert figures["split"] == "validation"
    assert json.loads((run / "evaluation-validation.json").read_text()) == figures
    assert {path.name for path in run.glob("*-validation.*")} == {
        *("evaluation-validation.json", "confusion-validation.png", "mistakes-validation.png")
    }
    assert (run / "report.html").exists()
    last = json.loads((run / "stdout").read_text().splitlines()[-1])
    assert figures["error"] == pytest.approx(last["error"])  # that of the end of training


def test_tensorboard_shows_the_confusion_matrix_and_the_worst_mistakes_once(
    command_line, run, event_values
):
    for _ in range(2):
        result(command_line("evaluate", f"--model_dir={run}", "--split=test"))
    pictures = [(tag, step, len(value) - 2) for tag, step, value in event_values(run / "test")]
    assert sorted(pictures) == [("confusion", 60, 1), ("mistakes", 60, 1)]


def test_runs_are_compared_in_one_table(command_line, run, trained, tmp_path):
    other = shutil.copytree(trained, tmp_path / "other")
    arguments = (f"--model_dir={run}", f"--compare={other}")
    done = command_line("evaluate", *arguments)
    assert_one_line_error(done, f"first evaluate it with --model_dir={other} --split=validation")
    first = result(command_line("evaluate", f"--model_dir={other}", "--checkpoint=best"))
    done = command_line("evaluate", *arguments)
    for name, figures in ((run, result(done)), (other, first)):
        (row,) = [line for line in done.out.splitlines() if line.startswith(str(name))]
        assert row.split()[1:4] == [
            str(figures["global_step"]),
            f"{figures['loss']:.4f}",
            str(figures["examples"]),
        ]


@pytest.mark.slow
def test_two_devices_evaluate_like_one(command_line, run_command, run):
    one = result(command_line("evaluate", f"--model_dir={run}", "--batch_size=100"))
    arguments = (f"--model_dir={run}", "--batch_size=100", "--devices=cpu:2")
    two = result(run_command("evaluate", *arguments))
    assert two.pop("loss") == pytest.approx(one.pop("loss"), abs=1e-6)
    assert two == one


def test_the_best_checkpoint_is_evaluated_on_request(command_line, run, event_values):
    read = event_values(run / "validation")
    errors = {step: float(value) for tag, step, value in read if tag == "error"}
    best = min(errors, key=lambda step: (errors[step], step))
    figures = result(command_line("evaluate", f"--model_dir={run}", "--checkpoint=best"))
    assert figures["global_step"] == best
    assert figures["error"] == pytest.approx(errors[best], abs=1e-6)


def test_a_run_without_a_checkpoint_is_refused(command_line, run, tmp_path):
    shutil.copy(run / "flags.txt", tmp_path)
    done = command_line("evaluate", f"--model_dir={tmp_path}")
    assert done.status == 1
    expected = (
        f"error: --model_dir={tmp_path}: no checkpoint in {tmp_path}/checkpoints; train first"
    )
    assert done.err.splitlines()[-1] == expected


def test_a_folder_that_is_no_run_is_refused(command_line, tmp_path):
    done = command_line("evaluate", f"--model_dir={tmp_path}/none")
    assert done.status == 1
    assert "no flags.txt there" in done.err.splitlines()[-1]
