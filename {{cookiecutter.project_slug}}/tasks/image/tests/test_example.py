"""The bundled example: the figures are those of scikit-learn, and the default learns it."""

import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss

from {{ cookiecutter.__package_name }}.engine.data import records


def result(done):
    assert done.status == 0, done.err
    return json.loads(done.out.splitlines()[-1])


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """A trained run that may be written to."""
    return shutil.copytree(trained, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def examples(prepared):
    """Images and classes of a split."""

    def read(split):
        reader = records.Reader(prepared.folder, split, prepared.splits[split])
        serialized = reader.read(np.arange(prepared.splits[split].examples))
        batch = records.parse(serialized, prepared.features)
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
    ("split", "batch_size"),
    [
        *(("test", 64), ("validation", 7)),
        *(pytest.param(*part, marks=pytest.mark.slow) for part in (("test", 270), ("train", 1000))),
    ],
)
def test_figures_are_those_of_scikit_learn(
    command_line, run, checkpoint, prepared, examples, split, batch_size
):
    done = command_line(
        "evaluate", f"--model_dir={run}", f"--split={split}", f"--batch_size={batch_size}"
    )
    figures = result(done)
    x, y = examples(split)
    probabilities = predicted(checkpoint(run, 60), prepared.statistics, x)
    classes = probabilities.argmax(axis=1)
    assert figures["split"] == split
    assert figures["global_step"] == 60
    assert figures["examples"] == len(y)
    assert figures["accuracy"] == pytest.approx(accuracy_score(y, classes), abs=1e-9)
    assert figures["error"] == pytest.approx(1 - accuracy_score(y, classes), abs=1e-9)
    assert figures["confusion"] == confusion_matrix(y, classes).tolist()
    assert figures["loss"] == pytest.approx(log_loss(y, probabilities), abs=1e-5)


@pytest.mark.slow
def test_tensorboard_shows_the_confusion_matrix_and_the_worst_mistakes_once(
    command_line, run, event_values
):
    for _ in range(2):
        result(command_line("evaluate", f"--model_dir={run}", "--split=test"))
    pictures = [(tag, step, len(value) - 2) for tag, step, value in event_values(run / "test")]
    assert sorted(pictures) == [("confusion", 60, 1), ("mistakes", 60, 1)]


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param("cpu", marks=pytest.mark.slow),
        *(pytest.param(several, marks=pytest.mark.release) for several in ("cpu:2", "cpu:4")),
    ],
)
def test_the_default_learns_to_read_digits(run_command, data_dir, tmp_path, devices):
    arguments = (f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run", f"--devices={devices}")
    done = run_command("train", *arguments)
    assert done.status == 0, done.err
    assert result(done)["error"] <= 0.03
    done = run_command("evaluate", f"--model_dir={tmp_path}/run", "--split=test")
    assert result(done)["error"] <= 0.04
