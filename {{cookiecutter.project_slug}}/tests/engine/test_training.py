import dataclasses
import math
import re
import shutil
import signal
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from {{ cookiecutter.__package_name }} import data
from {{ cookiecutter.__package_name }}.engine import batches, optimizers
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.examples import open_split
from {{ cookiecutter.__package_name }}.engine.options import LoopOptions
from {{ cookiecutter.__package_name }}.engine.run import trainer as trainers
from {{ cookiecutter.__package_name }}.engine.run.evaluation import make_evaluate
from {{ cookiecutter.__package_name }}.engine.run.restore import restore_run
from {{ cookiecutter.__package_name }}.engine.run.trainer import Trainer
from {{ cookiecutter.__package_name }}.model import Model
from {{ cookiecutter.__package_name }}.vocab import vocab

import plain
from comparing import assert_same_bits

STEPS = 60
GRAPH = "__run_graph__"  # TensorBoard's own tag

# What the flags of `short_run` come to.
OPTIMIZER = plain.options(
    name="momentum",
    learning_rate=0.05,
    schedule="cosine",
    warmup_steps=10,
    train_steps=STEPS,
    momentum=0.9,
    clip_norm=0.5,
)
LOOP = {
    "train_steps": STEPS,
    "steps_per_loop": 7,
    "checkpoint_every": 20,
    "keep_checkpoints": 5,
    "summary_every": 10,
    "evaluate_every": 25,
}


@pytest.fixture(scope="module")
def trainer(prepared):
    """Makes a trainer from literals: `trainer(folder, optimizer=..., train_steps=...)`."""

    def make(folder, *, optimizer=OPTIMIZER, batch_size=64, model=None, **loop):
        model = model or Model.for_dataset(prepared, dropout_rate=0.3, optimizer=optimizer, seed=0)
        return Trainer(
            model,
            strategy=tf.distribute.get_strategy(),
            dataset=prepared,
            train_split=open_split(prepared, "train"),
            validation_split=open_split(prepared, "validation"),
            model_dir=str(folder),
            batch_size=batch_size,
            seed=0,
            options=LoopOptions(**LOOP | loop),
            augment=data.augment,
        )

    return make


def stopped_after(trainer, step):
    """Runs a trainer that gets SIGTERM at the first look of the host after `step`."""
    take = trainer.take_steps

    def take_and_stop(begin, count):
        take(begin, count)
        if begin + count >= step:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(0.2)  # the thread that watches has to get it

    trainer.take_steps = take_and_stop
    return trainer.run()


@pytest.fixture(scope="module")
def resumed(trainer, tmp_path_factory):
    """A run with the flags of `trained` that was stopped twice, and made in another process."""
    folder = tmp_path_factory.mktemp("runs") / "resumed"
    first, second = (stopped_after(trainer(folder), step) for step in (17, 30))
    assert (first.global_step, second.global_step) == (20, 32)
    last = trainer(folder).run()
    assert (first.stopped, second.stopped, last.stopped) == (True, True, False)
    return folder


def test_a_run_that_was_stopped_ends_with_the_bits_of_one_that_was_not(
    trained, resumed, checkpoint
):
    for step in (20, 40, STEPS):
        assert_same_bits(checkpoint(resumed, step), checkpoint(trained, step))


def test_a_run_that_was_stopped_has_the_best_checkpoint_of_one_that_was_not(
    trained, resumed, checkpoint
):
    (best,) = (trained / "best").glob("ckpt-*.index")
    step = int(best.stem.removeprefix("ckpt-"))
    assert_same_bits(checkpoint(resumed, step, "best"), checkpoint(trained, step, "best"))


def curves(values):
    return {
        (tag, step): np.asarray(value).tolist()
        for tag, step, value in values
        if tag not in (vocab.x, GRAPH)
    }


def test_curves_have_one_value_for_each_tag_and_step(trained, resumed, event_values):
    for folder in (trained, resumed):
        for name in ("train", "validation"):
            read = [(tag, step) for tag, step, _ in event_values(folder / name)]
            assert len(read) == len(set(read)), folder


def test_curves_of_a_run_that_was_stopped_are_those_of_one_that_was_not(
    trained, resumed, event_values
):
    for name in ("train", "validation"):
        first, second = (curves(event_values(folder / name)) for folder in (trained, resumed))
        assert first.keys() == second.keys()
        for (tag, step), value in first.items():
            if tag not in (vocab.examples_per_second, vocab.input_wait):
                assert second[tag, step] == value


def test_tags_are_names_of_the_vocabulary_at_their_steps(trained, event_values):
    train = curves(event_values(trained / "train"))
    tags = (vocab.loss, vocab.gradient_norm, vocab.learning_rate, vocab.examples_per_second)
    expected = {
        (tag, step) for tag in (*tags, vocab.input_wait) for step in range(10, STEPS + 1, 10)
    }
    assert set(train) == expected | {(vocab.error, step) for step in (25, 50, STEPS)}
    validation = curves(event_values(trained / "validation"))
    judged = {tag for tag, _ in validation}
    assert {vocab.loss, vocab.error} <= judged <= set(vocab)
    assert set(validation) == {(tag, step) for tag in judged for step in (25, 50, STEPS)}
    for (tag, _), value in [*train.items(), *validation.items()]:
        assert value > 0 or tag not in (vocab.loss, *tags)


def test_the_graph_is_shown_once_with_a_scope_for_each_layer(resumed, prepared, event_values):
    (graph,) = [value for tag, _, value in event_values(resumed / "train") if tag == GRAPH]
    names = [node.name for node in graph_pb2.GraphDef.FromString(graph[0]).node]
    layers = [layer.name for layer in Model.for_dataset(prepared).network.layers if layer.weights]
    for layer in layers:
        assert [name for name in names if re.match(rf"network\w*/{layer}\w*/", name)], layer
    assert vocab.inference in names


def test_the_training_error_is_that_of_as_many_examples_as_validation_has(
    trained, prepared, checkpoint, event_values
):
    model = Model.for_dataset(prepared)
    for variable in model.network.variables:
        variable.assign(checkpoint(trained, STEPS)[f"inference/{variable.path}"])
    split = open_split(prepared, "train", limit=prepared.splits["validation"].examples)
    strategy = tf.distribute.get_strategy()
    metrics = make_evaluate(model, strategy)(batches.evaluation(split, strategy, batch_size=50))
    shown = curves(event_values(trained / "train"))[vocab.error, STEPS]
    assert shown == pytest.approx(metrics[vocab.error], abs=1e-6)


def test_the_curve_of_the_learning_rate_follows_the_formula(trained, event_values):
    for (tag, step), value in curves(event_values(trained / "train")).items():
        if tag == vocab.learning_rate:  # the value at step s is the one that step s used
            assert value == pytest.approx(float(optimizers.Schedule(OPTIMIZER)(step - 1)))
            warm = min(1, step / 11)
            done = min(1, max(0, (step - 1 - 10) / (STEPS - 10)))
            assert value == pytest.approx(0.05 * warm * (1 + np.cos(np.pi * done)) / 2, abs=1e-8)


def test_sample_images_are_shown_once(resumed, prepared, event_values):
    samples = [step for tag, step, _ in event_values(resumed / "train") if tag == vocab.x]
    feature = prepared.features.get(vocab.x)
    has_images = feature is not None and len(feature.shape) == 3
    assert samples == ([0] if has_images else [])


def test_the_best_checkpoint_is_the_one_with_the_lowest_validation_error(
    trained, event_values, checkpoint
):
    read = curves(event_values(trained / "validation"))
    errors = {step: value for (tag, step), value in read.items() if tag == vocab.error}
    best = min(errors, key=lambda step: (errors[step], step))
    assert [path.name for path in (trained / "best").glob("*.index")] == [f"ckpt-{best}.index"]
    assert checkpoint(trained, best, "best")[vocab.global_step] == best


def test_checkpoints_stand_at_exact_multiples_and_at_the_end(trained):
    steps = {path.name for path in (trained / "checkpoints").glob("*.index")}
    assert steps == {f"ckpt-{step}.index" for step in (20, 40, 60)}


class Counting(Model):
    """Counts how often Python runs through a step: once for each trace."""

    optimized = judged = 0

    def optimize(self, *batch, **others):
        self.optimized += 1
        return super().optimize(*batch, **others)

    def outputs(self, *batch, **others):
        self.judged += 1
        return super().outputs(*batch, **others)


def test_steps_are_traced_once_with_evaluation_checkpoints_and_a_partial_last_batch(
    trainer, prepared, tmp_path
):
    assert prepared.splits["validation"].examples % 64  # the last batch is not full
    model = Counting.for_dataset(prepared, optimizer=OPTIMIZER)
    run = trainer(tmp_path, model=model)
    assert run.run().global_step == STEPS
    assert (model.optimized, model.judged) == (1, 1)


def test_a_finished_run_has_nothing_left_and_says_why(trainer, trained):
    run = trainer(trained)
    assert run.first_step == STEPS
    assert run.why_finished == "a larger --train_steps or --epochs goes on"
    assert trainer(trained, train_steps=STEPS + 1).why_finished is None


@pytest.mark.slow
def test_weights_and_gradients_are_shown_whenever_curves_are_written(
    trainer, event_values, tmp_path
):
    options = dataclasses.replace(OPTIMIZER, report_gradients=True)
    run = trainer(tmp_path, optimizer=options, train_steps=20, summarize_gradients=True)
    run.run()
    read = event_values(tmp_path / "train")
    norms = {step: value for tag, step, value in read if tag == vocab.gradient_norm}
    for name in (vocab.gradient, vocab.inference):
        for variable in run.model.network.trainable_variables:
            shown = [step for tag, step, _ in read if tag == f"{name}/{variable.path}"]
            assert shown == [10, 20]
    for step in (10, 20):
        of_variables = [
            float(np.squeeze(value))
            for tag, at, value in read
            if at == step and tag.startswith(f"{vocab.gradient_norm}/")
        ]
        assert len(of_variables) == len(run.model.network.trainable_variables)
        assert np.linalg.norm(of_variables) == pytest.approx(float(norms[step]), rel=1e-5)


@pytest.mark.slow
def test_averages_are_what_is_evaluated_and_restored(trainer, prepared, checkpoint, tmp_path):
    options = dataclasses.replace(OPTIMIZER, ema_momentum=0.9)
    run = trainer(tmp_path, optimizer=options, train_steps=20)
    error = run.run().validation_error
    saved = checkpoint(tmp_path, 20)
    judged = {}
    for averages, name in ((True, vocab.average), (False, vocab.inference)):
        model = Model.for_dataset(prepared)
        restore_run(str(tmp_path), model, averages=averages)
        for variable in model.network.trainable_variables:
            expected = saved[f"{name}/{variable.path}"]
            assert variable.numpy().tobytes() == expected.tobytes()
        evaluate = make_evaluate(model, tf.distribute.get_strategy())
        split = open_split(prepared, "validation")
        judged[name] = evaluate(
            batches.evaluation(split, tf.distribute.get_strategy(), batch_size=64)
        )
    assert judged[vocab.average][vocab.error] == error
    assert judged[vocab.average][vocab.loss] != judged[vocab.inference][vocab.loss]


CONSTANT = plain.options(learning_rate=0.02)


@pytest.fixture(scope="module")
def finished_at_ten(trainer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "ten"
    trainer(folder, optimizer=CONSTANT, train_steps=10).run()
    return folder


@pytest.fixture
def ten_steps(finished_at_ten, tmp_path):
    """A copy of a run that is finished after ten steps at a constant rate."""
    return shutil.copytree(finished_at_ten, tmp_path / "run")


@pytest.mark.parametrize(
    ("schedule", "rate"),
    [
        ("constant", lambda step: 0.005),
        pytest.param(
            "cosine",
            lambda step: 0.005 * (1 + math.cos(math.pi * (step - 1) / 20)) / 2,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_more_steps_go_on_from_the_last_and_use_a_new_learning_rate(
    trainer, ten_steps, event_values, schedule, rate
):
    new = plain.options(learning_rate=0.005, schedule=schedule, train_steps=20)
    run = trainer(ten_steps, optimizer=new, train_steps=20, summary_every=1)
    assert run.first_step == 10
    assert run.run().global_step == 20
    read = curves(event_values(ten_steps / "train"))
    assert read[vocab.learning_rate, 10] == pytest.approx(0.02)
    rates = [read[vocab.learning_rate, step] for step in range(11, 21)]
    assert rates == pytest.approx([rate(step) for step in range(11, 21)], rel=1e-5)


@pytest.mark.slow
def test_more_steps_end_with_the_bits_of_as_many_at_once(trainer, ten_steps, tmp_path, checkpoint):
    trainer(ten_steps, optimizer=CONSTANT, train_steps=25).run()
    trainer(tmp_path / "whole", optimizer=CONSTANT, train_steps=25).run()
    both, whole = checkpoint(ten_steps, 25), checkpoint(tmp_path / "whole", 25)
    del both[vocab.state], whole[vocab.state]  # one was evaluated at step 10 too
    assert_same_bits(both, whole)


def test_a_loss_that_is_not_finite_stops_training_and_leaves_finite_checkpoints(
    trainer, ten_steps, checkpoint
):
    run = trainer(
        ten_steps,
        optimizer=plain.options(learning_rate=1e30),
        train_steps=STEPS,
        checkpoint_every=1,
        evaluate_every=1,
    )
    with pytest.raises(UserError, match=r"--learning_rate") as caught:
        run.run()
    named = int(str(caught.value).removeprefix("step ").partition(":")[0])
    assert 11 <= named < 20
    for folder in ("checkpoints", "best"):
        steps = [int(p.stem.removeprefix("ckpt-")) for p in (ten_steps / folder).glob("*.index")]
        assert steps
        assert max(steps) <= named
        for step in steps:
            values = checkpoint(ten_steps, step, folder)
            assert all(np.all(np.isfinite(v)) for k, v in values.items() if k != vocab.state)


def test_the_step_whose_loss_is_not_finite_is_named(trainer, ten_steps, monkeypatch):
    run = trainer(ten_steps, optimizer=CONSTANT, train_steps=STEPS)
    rows = np.ones([7, 3], np.float32)
    rows[4, 0] = np.nan
    rows[5:] = np.inf

    class Taken:
        names, shown = ("loss", "gradient_norm", "learning_rate"), {}

        def __init__(self, *arguments):
            pass

        def __call__(self, count):
            return tf.constant(rows), {}

    monkeypatch.setattr(trainers, "Train", Taken)
    with pytest.raises(UserError, match=r"^step 15: loss became nan; "):
        run.run()
    assert [path.name for path in (ten_steps / "checkpoints").glob("*.index")] == ["ckpt-10.index"]


def test_other_data_or_another_batch_size_is_refused_unless_told_to_go_on(trainer, ten_steps):
    with pytest.raises(UserError, match=r"batch_size: 64 before, 32 now.*--continue_on_new_data"):
        trainer(ten_steps, batch_size=32, train_steps=15)
    run = trainer(ten_steps, batch_size=32, train_steps=15, continue_on_new_data=True)
    assert run.run().global_step == 15


def test_training_ends_when_evaluation_finds_no_new_best_for_long_enough(trainer, tmp_path):
    frozen = plain.options(learning_rate=0.0)
    options = {"evaluate_every": 3, "early_stop_patience": 2, "train_steps": 50}
    outcome = trainer(tmp_path, optimizer=frozen, **options).run()
    # Moving statistics go on: the first evaluation need not be the best.
    assert outcome.global_step < 50
    assert not outcome.stopped
    again = trainer(tmp_path, optimizer=frozen, **options)
    assert again.first_step == outcome.global_step
    assert "no new best" in again.why_finished
