"""One device or many: the same training. Each training is a process, or several, of its own.

Batch normalisation, dropout and augmentation are on, as they are by default; gradients are clipped and, where that
changes anything, multiplied, updates are scaled, weights decay.
"""

import numpy as np
import pytest

from {{ cookiecutter.__package_name }}.vocab import vocab

STEPS = 100
CLIP_NORM = 0.1
FLAGS = (
    *(f"--train_steps={STEPS}", "--learning_rate_schedule=constant", "--warmup_steps=10"),
    *(
        f"--clip_norm={CLIP_NORM}",
        "--learning_rate_multipliers=.*kernel=0.5",
        "--weight_decay=0.01",
    ),
    *(f"--evaluate_every={STEPS}", f"--checkpoint_every={STEPS}", "--summary_every=10"),
)
RATES = {"sgd": 0.05, "momentum": 0.05, "adamw": 0.001}
MULTIPLIED = (
    "--gradient_multipliers=.*kernel=0.5"  # refused for adamw, whose updates do not depend on it
)
# adamw divides by second moments near zero, which magnifies rounding.
LARGEST_DIFFERENCE = {"sgd": 1e-5, "momentum": 1e-5, "adamw": 1e-3}
EVERY = [(optimizer, devices) for optimizer in RATES for devices in ("cpu:2", "cpu:4")]
SOME = [("sgd", "cpu:2"), ("momentum", "cpu:4"), ("adamw", "cpu:2")]


@pytest.fixture(scope="module")
def run_of(run_command, run_workers, data_dir, tmp_path_factory):
    """Trains, once for each setting: `run_of(optimizer, devices, workers, *flags)`; returns the folder of the run."""
    runs = {}

    def run(optimizer, devices="cpu", *flags, workers=1):
        key = (optimizer, devices, flags, workers)
        if key not in runs:
            folder = tmp_path_factory.mktemp("runs") / "run"
            arguments = (
                *(f"--data_dir={data_dir}", f"--model_dir={folder}", f"--devices={devices}"),
                *(
                    *FLAGS,
                    f"--optimizer={optimizer}",
                    f"--learning_rate={RATES[optimizer]}",
                    *([] if optimizer == "adamw" else [MULTIPLIED]),
                    *flags,
                ),
            )
            done = (
                run_command("train", *arguments)
                if workers == 1
                else run_workers(workers, "train", *arguments)
            )
            assert done.status == 0, done.err
            runs[key] = folder
        return runs[key]

    return run


@pytest.fixture(scope="module")
def largest_difference(checkpoint):
    """The largest absolute difference between the weights of two runs, moving statistics included."""

    def difference(first, second):
        one, other = (checkpoint(run, STEPS) for run in (first, second))
        weights = [key for key in one if key.startswith(f"{vocab.inference}/")]
        assert weights
        return max(float(np.max(np.abs(one[key] - other[key]))) for key in weights)

    return difference


def curve(event_values, run, split, name):
    return [float(value) for tag, _, value in event_values(run / split) if tag == name]


@pytest.mark.parametrize(
    ("optimizer", "devices"),
    [
        *(pytest.param(*of, marks=pytest.mark.slow) for of in SOME),
        *(pytest.param(*of, marks=pytest.mark.release) for of in EVERY if of not in SOME),
    ],
)
def test_any_number_of_devices_ends_with_the_same_weights(
    run_of, largest_difference, event_values, optimizer, devices
):
    one, many = run_of(optimizer), run_of(optimizer, devices)
    assert largest_difference(one, many) <= LARGEST_DIFFERENCE[optimizer]
    [first], [second] = (curve(event_values, r, "validation", vocab.loss) for r in (one, many))
    assert second == pytest.approx(first, abs=1e-4)


@pytest.mark.slow
def test_the_gradients_were_clipped_in_most_steps(run_of, event_values):
    norms = curve(event_values, run_of("sgd"), "train", vocab.gradient_norm)
    assert len(norms) == STEPS // 10
    assert np.mean(np.array(norms) > CLIP_NORM) > 0.5


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param("sgd", marks=pytest.mark.slow),
        *(pytest.param(name, marks=pytest.mark.release) for name in ("momentum", "adamw")),
    ],
)
def test_two_processes_with_a_device_each_end_as_one_with_two(
    run_of, largest_difference, optimizer
):
    processes = run_of(optimizer, workers=2)
    assert (
        largest_difference(run_of(optimizer, "cpu:2"), processes) <= (LARGEST_DIFFERENCE[optimizer])
    )


@pytest.mark.slow
def test_a_run_may_change_from_one_device_to_two_halfway(
    run_of, run_command, largest_difference, data_dir, tmp_path
):
    for devices, steps in (("cpu", STEPS // 2), ("cpu:2", STEPS)):
        done = run_command(
            "train",
            *(f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run", f"--devices={devices}"),
            *(*FLAGS, MULTIPLIED, f"--train_steps={steps}"),
            *("--optimizer=momentum", f"--learning_rate={RATES['momentum']}"),
        )
        assert done.status == 0, done.err
    assert largest_difference(run_of("momentum"), tmp_path / "run") <= 1e-5


@pytest.mark.slow
def test_micro_batches_are_the_same_on_two_devices(run_of, largest_difference):
    flags = ("--accumulate_steps=4",)
    assert largest_difference(run_of("sgd", "cpu", *flags), run_of("sgd", "cpu:2", *flags)) <= 1e-5
