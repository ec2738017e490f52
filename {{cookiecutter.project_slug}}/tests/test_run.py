import json

import numpy as np
import pytest
from absl import flags as absl_flags
from absl.testing import flagsaver

from {{ cookiecutter.__package_name }} import flags, run
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.train import train

from comparing import assert_same_bits


@pytest.fixture
def unparsed():
    """What a notebook finds: no command line was parsed."""
    with flagsaver.flagsaver():
        absl_flags.FLAGS.unparse_flags()
        yield
        assert not absl_flags.FLAGS.is_parsed()
    absl_flags.FLAGS.mark_as_parsed()


def settings(arguments):
    """Returns flags as settings from Python: `--learning_rate=0.1`, `--augment`."""
    pairs = [argument.removeprefix("--").partition("=") for argument in arguments]
    return {name: value or True for name, _, value in pairs}


def test_a_training_from_python_ends_with_the_bits_of_the_command(
    unparsed, trained, data_dir, short_run, tmp_path, checkpoint
):
    given = {**settings(short_run), "clip_norm": 0.5, "epochs": None}  # texts or values
    outcome = train(**given, data_dir=data_dir, model_dir=tmp_path / "run")
    assert_same_bits(checkpoint(tmp_path / "run", 60), checkpoint(trained, 60))
    said = json.loads((trained / "stdout").read_text().splitlines()[-1])
    assert (outcome.global_step, outcome.stopped) == (60, False)
    assert outcome.train_loss == said["train_loss"]
    assert outcome.validation_error == said["validation_error"]
    assert "--train_steps=60" in (tmp_path / "run" / "flags.txt").read_text()


def test_flags_are_as_before_when_python_has_trained(saved_flags, tmp_path):
    absl_flags.FLAGS(["train", "--batch_size=8", "--warm_start_from=a", "--warm_start_include=b"])
    with pytest.raises(UserError, match="no data there yet"):
        train(data_dir=tmp_path, batch_size=16, warm_start_include=["c", "d"], warm_start_from="e")
    assert (flags.BATCH_SIZE.value, flags.WARM_START_INCLUDE.value) == (8, ["b"])
    assert absl_flags.FLAGS["batch_size"].present == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learning_rat": 0.1}, "no setting 'learning_rat'; did you mean 'learning_rate'?"),
        ({"split": "test"}, "no setting 'split'"),
        ({"batch_size": 0}, "--batch_size=0"),
        ({"batch_size": 1.5}, "--batch_size=1.5"),
        ({"batch_size": None}, "batch_size=None: must have a value, such as 64"),
        ({"optimizer": "magic"}, "--optimizer=magic"),
        ({"profile_steps": [20, 10]}, "--profile_steps"),
        ({"gradient_multipliers": ["conv_1"]}, "must be pattern=number"),
        ({"train_steps": 5, "epochs": 1}, "train_steps"),
    ],
)
def test_a_setting_is_checked_like_the_flag(unparsed, given, message, tmp_path):
    with pytest.raises(UserError) as refused:
        train(model_dir=tmp_path / "run", **given)
    assert message in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_an_opened_run_has_its_flags_its_data_and_its_weights(
    unparsed, trained, data_dir, prepared, checkpoint
):
    opened = run.open_run(str(trained))
    assert opened.step == 60
    assert opened.dataset.fingerprint == prepared.fingerprint
    assert opened.model.options.clip_norm == 0.5  # --clip_norm of the run
    assert opened.model.options.train_steps == 60
    saved = checkpoint(trained, 60)
    for v in opened.model.network.trainable_variables:
        np.testing.assert_array_equal(v.value, saved[f"inference/{v.path}"])
    batch = opened.batch("test", 5)
    assert opened.model.inference(batch["x"]).shape[0] == batch["y"].shape[0] == 5
    assert opened.examples("test").examples == prepared.splits["test"].examples


def test_an_opened_run_has_its_curves(unparsed, trained):
    history = run.open_run(str(trained)).history
    assert [step for step, _ in history["train"]["loss"]] == [10, 20, 30, 40, 50, 60]
    said = json.loads((trained / "stdout").read_text().splitlines()[-1])
    step, error = history["validation"]["error"][-1]
    assert step == 60
    assert error == np.float32(said["validation_error"])


def test_the_best_checkpoint_is_opened_on_request(unparsed, trained):
    said = json.loads((trained / "stdout").read_text().splitlines()[-1])
    assert run.open_run(str(trained), checkpoint="best").step == said["best_step"]


def test_settings_take_the_place_of_the_flags_of_the_run(unparsed, trained):
    opened = run.open_run(str(trained), dropout_rate=0.75)
    rates = [layer.rate for layer in opened.model.network.layers if hasattr(layer, "rate")]
    assert set(rates) == {0.75}


def test_a_run_that_is_none_is_refused(unparsed, tmp_path):
    with pytest.raises(UserError, match="not the folder of a run"):
        run.open_run(str(tmp_path))


@pytest.mark.slow
def test_python_can_train_twice_in_a_process_of_its_own_without_a_warning(
    run_python, data_dir, tmp_path
):
    program = f"""
from {run.__package__} import run, train
for steps in (20, 40):
    outcome = train.train(data_dir={str(data_dir)!r}, model_dir={str(tmp_path / "run")!r}, train_steps=steps)
other = train.train(data_dir={str(data_dir)!r}, model_dir={str(tmp_path / "other")!r}, train_steps=20)
print(outcome.global_step, other.global_step, run.open_run({str(tmp_path / "run")!r}).step)
"""
    done = run_python("-W", "error", "-c", program)
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] == "40 20 40"
    assert "retracing" not in done.err
