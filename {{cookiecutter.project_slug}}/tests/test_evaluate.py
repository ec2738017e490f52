import json
import shutil

import pytest

from {{ cookiecutter.__package_name }} import evaluate
from {{ cookiecutter.__package_name }}.engine.errors import UserError

from comparing import assert_one_line_error


def result(done):
    assert done.status == 0, done.err
    return json.loads(done.out.splitlines()[-1])


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """A trained run that may be written to."""
    return shutil.copytree(trained, tmp_path_factory.mktemp("runs") / "run")


def test_metrics_are_written_into_the_run_and_nothing_has_to_be_repeated(command_line, run):
    metrics = result(command_line("evaluate", f"--model_dir={run}"))
    assert metrics["split"] == "validation"
    assert json.loads((run / "evaluation-validation.json").read_text()) == metrics
    assert (run / "report.html").exists()
    last = json.loads((run / "stdout").read_text().splitlines()[-1])
    assert metrics["error"] == pytest.approx(last["validation_error"])  # at the end of training


@pytest.mark.slow
def test_a_run_is_evaluated_from_python_as_by_the_command(command_line, run):
    by_command = result(command_line("evaluate", f"--model_dir={run}", "--split=test"))
    assert evaluate.evaluate(model_dir=str(run), split="test") == by_command
    with pytest.raises(UserError, match="there is no setting 'splits'; did you mean 'split'"):
        evaluate.evaluate(model_dir=str(run), splits="test")


@pytest.mark.slow
def test_runs_are_compared_in_one_table(command_line, run, trained, tmp_path):
    other = shutil.copytree(trained, tmp_path / "other")
    arguments = (f"--model_dir={run}", f"--compare={other}")
    done = command_line("evaluate", *arguments)
    assert_one_line_error(done, f"first evaluate it with --model_dir={other} --split=validation")
    first = result(command_line("evaluate", f"--model_dir={other}", "--checkpoint=best"))
    done = command_line("evaluate", *arguments)
    for name, metrics in ((run, result(done)), (other, first)):
        (row,) = [line for line in done.out.splitlines() if line.startswith(str(name))]
        assert row.split()[1:4] == [
            str(metrics["global_step"]),
            f"{metrics['loss']:.4f}",
            str(metrics["examples"]),
        ]


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["cpu:2", "cpu:4"])
def test_many_devices_evaluate_like_one(command_line, run_command, run, devices):
    # The last batch is not full: the fourth device gets padding only.
    one = result(command_line("evaluate", f"--model_dir={run}", "--batch_size=100"))
    arguments = (f"--model_dir={run}", "--batch_size=100", f"--devices={devices}")
    many = result(run_command("evaluate", *arguments))
    assert many.keys() == one.keys()
    for name, value in one.items():
        # Sums are rounded otherwise; shares of so few examples and counts are the same or far apart.
        expected = pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
        assert many[name] == expected, name


def test_the_best_checkpoint_is_evaluated_on_request(command_line, run, event_values):
    read = event_values(run / "validation")
    errors = {step: float(value) for tag, step, value in read if tag == "error"}
    best = min(errors, key=lambda step: (errors[step], step))
    metrics = result(command_line("evaluate", f"--model_dir={run}", "--checkpoint=best"))
    assert metrics["global_step"] == best
    assert metrics["error"] == pytest.approx(errors[best], abs=1e-6)


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
