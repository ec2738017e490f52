import concurrent.futures
import os
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.options import OptimizerOptions
from {{ cookiecutter.__package_name }}.engine.run import checkpoints
from {{ cookiecutter.__package_name }}.engine.run.checkpoints import Saver, save_variables
from {{ cookiecutter.__package_name }}.engine.run.restore import restore_run
from {{ cookiecutter.__package_name }}.engine.run.state import DataPosition, State
from {{ cookiecutter.__package_name }}.engine.run.variables import variables_of
from {{ cookiecutter.__package_name }}.model import Model

DATA = DataPosition(fingerprint="f00", examples=100, batch_size=10, seed=3)
STATE = State(DATA, loss=1 / 3, error=0.25, validation_loss=0.5, best=((0.1 + 0.2, 3), (0.5, 1)))


@pytest.fixture(scope="module")
def model(prepared):
    return Model.for_dataset(prepared)


def some_variables(value=0.0):
    return {
        "inference/dense/kernel": tf.Variable(tf.fill([3, 2], value)),
        "optimizer/dense/kernel_momentum": tf.Variable(tf.fill([3, 2], value + 0.5)),
        "global_step": tf.Variable(int(value), dtype=tf.int64),
    }


def save(folder, step, variables, *, keep=10, state=STATE):
    one = Saver(folder, variables)
    one.save(step, state, keep)
    one.wait()


def saved(folder, *steps, keep=10):
    """Saves checkpoints whose variables hold the number of their step."""
    for step in steps:
        save(folder, step, some_variables(float(step)), keep=keep)


def restored_step(folder):
    """Returns what the newest readable checkpoint holds."""
    variables = some_variables(-1.0)
    assert Saver(folder, variables).restore() is not None
    return int(variables["global_step"])


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_what_is_restored_has_the_bits_of_what_was_saved(tmp_path):
    values = np.random.default_rng(0).normal(size=[40, 30]).astype(np.float32)
    values[0, 0], values[0, 1] = 1e-40, -0.0  # a denormal number and a signed zero
    save(tmp_path, 7, {"inference/a": tf.Variable(values)})
    variable = tf.Variable(tf.zeros([40, 30]))
    state = Saver(tmp_path, {"inference/a": variable}).restore()
    assert variable.numpy().tobytes() == values.tobytes()
    assert state == STATE


def test_an_empty_folder_restores_nothing(tmp_path):
    variables = some_variables(5.0)
    assert Saver(tmp_path / "none", variables).restore() is None
    assert int(variables["global_step"]) == 5


def test_training_that_goes_on_does_not_change_what_is_being_saved(tmp_path, monkeypatch):
    dense = keras.layers.Dense(200, name="dense")
    dense.build([None, 300])
    variables = {f"inference/{v.path}": v.value for v in dense.variables}
    before = dense.kernel.numpy().copy()
    go = threading.Event()
    write = Saver._write
    monkeypatch.setattr(Saver, "_write", lambda *arguments: go.wait(30) and write(*arguments))
    one = Saver(tmp_path, variables)
    one.save(1, STATE, 1)

    @tf.function
    def train():
        for variable in variables.values():
            variable.assign_add(tf.ones_like(variable))

    for _ in range(5):
        train()
    go.set()
    one.wait()
    assert dense.kernel.numpy() == pytest.approx(before + 5, abs=1e-5)
    written = tf.train.load_checkpoint(str(tmp_path / "ckpt-1")).get_tensor(
        "inference/dense/kernel"
    )
    assert written.tobytes() == before.tobytes()


def test_the_newest_are_kept(tmp_path):
    saved(tmp_path, 1, 2, 5, 10, 20, keep=3)
    assert checkpoints.steps_in(tmp_path) == [5, 10, 20]
    assert files(tmp_path) == [
        f"ckpt-{step}.{part}" for step in (10, 20, 5) for part in ("data-00000-of-00001", "index")
    ]


def test_the_steps_named_are_kept(tmp_path):
    one = Saver(tmp_path, some_variables())
    for step, keep in ((1, [1]), (2, [1, 2]), (3, [3, 1])):
        one.save(step, STATE, keep)
    one.wait()
    assert checkpoints.steps_in(tmp_path) == [1, 3]


def test_the_newest_is_the_one_with_the_highest_step(tmp_path):
    saved(tmp_path, 9, 10)
    assert restored_step(tmp_path) == 10


def test_what_a_killed_process_left_behind_is_cleared_away(tmp_path):
    saved(tmp_path, 1)
    (tmp_path / ".writing").mkdir(exist_ok=True)
    (tmp_path / ".writing" / "ckpt-2.data-00000-of-00001.tempstate1").write_bytes(b"half")
    (tmp_path / "ckpt-2.data-00000-of-00001").write_bytes(b"killed before the index was there")
    assert restored_step(tmp_path) == 1
    # Reading leaves it: another process may be writing.
    assert list((tmp_path / ".writing").glob("*"))
    saved(tmp_path, 2)
    assert not list((tmp_path / ".writing").glob("*"))
    assert restored_step(tmp_path) == 2
    assert files(tmp_path) == [
        f"ckpt-{step}.{part}" for step in (1, 2) for part in ("data-00000-of-00001", "index")
    ]


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


def delete(path):
    path.unlink()


@pytest.mark.parametrize("damage", [truncate, empty, delete])
@pytest.mark.parametrize("part", ["index", "data-00000-of-00001"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(tmp_path, caplog, part, damage):
    saved(tmp_path, 1, 2)
    damage(tmp_path / f"ckpt-2.{part}")
    assert restored_step(tmp_path) == 1
    if (part, damage) != ("index", delete):  # without its index it does not exist
        assert any("ckpt-2" in r.getMessage() and r.levelname == "WARNING" for r in caplog.records)


def test_what_was_saved_after_a_fall_back_is_not_pushed_out_by_the_damaged(tmp_path):
    saved(tmp_path, 10, 20, 30)
    truncate(tmp_path / "ckpt-20.data-00000-of-00001")
    empty(tmp_path / "ckpt-30.index")
    saved(tmp_path, 15, keep=1)
    assert restored_step(tmp_path) == 15


def test_a_save_waits_for_another_and_fails_with_it(tmp_path, monkeypatch):
    go = threading.Event()
    write = checkpoints.write

    def slow(path, tensors):
        if path.parent.name == "best":
            assert go.wait(30)
            raise OSError("no room")
        write(path, tensors)

    monkeypatch.setattr(checkpoints, "write", slow)
    best, newest = (Saver(tmp_path / n, some_variables(2.0)) for n in ("best", "newest"))
    best.save(2, STATE, [2])
    newest.save(2, STATE, 3, after=best)
    go.set()
    for one in (newest, best):
        with pytest.raises(UserError, match=r"best: ckpt-2 could not be written \(no room\)"):
            one.wait()
    assert checkpoints.steps_in(tmp_path / "newest") == []


def test_when_none_can_be_read_each_is_named_and_nothing_is_deleted(tmp_path):
    saved(tmp_path, 1, 2, 3)
    truncate(tmp_path / "ckpt-1.data-00000-of-00001")
    empty(tmp_path / "ckpt-2.index")
    delete(tmp_path / "ckpt-3.data-00000-of-00001")
    before = files(tmp_path)
    variables = some_variables(-1.0)
    with pytest.raises(UserError) as caught:
        Saver(tmp_path, variables).restore()
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}: no checkpoint can be read; ckpt-3: ")
    assert "; ckpt-2: " in message
    assert "; ckpt-1: " in message
    assert len(message.splitlines()) == 1
    assert files(tmp_path) == before
    assert int(variables["global_step"]) == -1


def test_a_checkpoint_of_another_model_is_refused_with_a_list_and_changes_nothing(tmp_path):
    saved(tmp_path, 1)
    variables = some_variables(5.0)
    variables["inference/dense/kernel"] = tf.Variable(tf.fill([4, 2], 5.0))
    variables["inference/dense/bias"] = tf.Variable(tf.fill([2], 5.0))
    with pytest.raises(UserError) as caught:
        Saver(tmp_path, variables).restore()
    message = str(caught.value)
    assert "ckpt-1 belongs to another model" in message
    assert "inference/dense/kernel is [3, 2], now [4, 2]" in message
    assert "inference/dense/bias is missing" in message
    assert int(variables["global_step"]) == 5


def test_a_checkpoint_with_more_than_the_model_has_is_refused(tmp_path):
    save(tmp_path, 1, some_variables() | {"inference/dense/bias": tf.Variable([1.0])})
    with pytest.raises(
        UserError, match=r"another model \(inference/dense/bias is not in this model"
    ):
        Saver(tmp_path, some_variables()).restore()


def test_another_optimizer_without_variables_of_its_own_is_refused(tmp_path):
    save(tmp_path, 1, some_variables())
    plain = {k: v for k, v in some_variables().items() if not k.startswith("optimizer/")}
    with pytest.raises(UserError, match=r"optimizer/dense/kernel_momentum is not in this model"):
        Saver(tmp_path, plain).restore()
    assert Saver(tmp_path, plain, ignored=("state", "optimizer")).restore() is not None


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_not_saved(tmp_path, bad):
    saved(tmp_path, 1)
    variables = some_variables(2.0)
    variables["optimizer/dense/kernel_momentum"].assign(tf.fill([3, 2], bad))
    one = Saver(tmp_path, variables)
    one.save(2, STATE, 10)
    with pytest.raises(
        UserError, match=r"step 2: optimizer/dense/kernel_momentum holds NaN or Inf"
    ):
        one.wait()
    assert checkpoints.steps_in(tmp_path) == [1]
    assert restored_step(tmp_path) == 1


def test_a_failed_save_is_known_before_the_next_one(tmp_path, monkeypatch):
    go = threading.Event()

    def fail(path, tensors):
        assert go.wait(30)
        raise OSError("no room")

    monkeypatch.setattr(checkpoints, "write", fail)
    one = Saver(tmp_path, some_variables(2.0))
    one.check()
    one.save(2, STATE, 10)
    one.check()  # not written yet
    go.set()
    assert one._written is not None
    concurrent.futures.wait([one._written], timeout=30)
    with pytest.raises(UserError, match=r"ckpt-2 could not be written \(no room\)"):
        one.check()


def test_a_checkpoint_that_cannot_be_written_is_an_error_and_leaves_the_others(tmp_path):
    saved(tmp_path, 1)
    (tmp_path / ".writing").write_text("a file in the way")
    one = Saver(tmp_path, some_variables(2.0))
    one.save(2, STATE, 10)
    with pytest.raises(UserError, match=r"ckpt-2 could not be written"):
        one.save(3, STATE, 10)
    (tmp_path / ".writing").unlink()
    one.save(4, STATE, 10)
    one.wait()
    assert checkpoints.steps_in(tmp_path) == [1, 4]


def test_a_run_without_checkpoints_cannot_be_restored(tmp_path, model):
    with pytest.raises(UserError, match=r"no checkpoint in .*checkpoints; train first"):
        restore_run(str(tmp_path), model)


def test_the_best_checkpoint_of_a_run_is_the_first_of_its_list(tmp_path, model):
    best = State(DATA, best=((0.1, 10), (0.2, 20)))
    for folder, step, state in (("checkpoints", 30, STATE), ("best", 10, best), ("best", 20, best)):
        model.optimizer.iterations.assign(step)
        save(tmp_path / folder, step, variables_of(model), state=state)
    assert restore_run(str(tmp_path), model, best=True).best[0] == (0.1, 10)
    assert int(model.optimizer.iterations) == 10
    restore_run(str(tmp_path), model)
    assert int(model.optimizer.iterations) == 30


def test_a_best_checkpoint_that_is_gone_leaves_the_next_best(tmp_path, model):
    best = State(DATA, best=((0.1, 10), (0.2, 20)))
    model.optimizer.iterations.assign(20)
    save(tmp_path / "best", 20, variables_of(model), state=best)
    restore_run(str(tmp_path), model, best=True)
    assert int(model.optimizer.iterations) == 20


def test_evaluation_needs_no_optimizer_state(tmp_path, model, prepared):
    save(tmp_path / "checkpoints", 30, variables_of(model))
    other = Model.for_dataset(prepared, optimizer=OptimizerOptions(name="adam"), seed=1)
    restore_run(str(tmp_path), other)
    for restored, expected in zip(other.network.weights, model.network.weights, strict=True):
        assert np.array_equal(restored.numpy(), expected.numpy())


def test_a_chosen_subset_can_be_saved(tmp_path):
    written = save_variables(tmp_path / "a" / "b", some_variables(), include=r"inference/.*")
    assert written == ["inference/dense/kernel"]
    assert list(checkpoints.read(tmp_path / "a" / "b")) == ["inference/dense/kernel"]
    with pytest.raises(UserError, match=r"'nothing' matches none of inference/dense/kernel, "):
        save_variables(tmp_path / "a" / "b", some_variables(), include="nothing")
