import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import optimizers
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.options import OPTIMIZERS, SCHEDULES
from {{ cookiecutter.__package_name }}.engine.run.variables import averaged

import plain


def rates(**options):
    schedule = optimizers.Schedule(plain.options(**options))
    return [float(schedule(step)) for step in range(130)]


def test_a_constant_rate_stays():
    assert rates(schedule="constant", learning_rate=0.25) == [0.25] * 130


def test_warm_up_rises_in_a_line_and_ends_at_the_peak():
    expected = [0.5 * min(1, (step + 1) / 11) for step in range(130)]
    assert rates(schedule="constant", learning_rate=0.5, warmup_steps=10) == pytest.approx(expected)


def test_cosine_falls_from_the_end_of_the_warm_up_to_zero_at_the_end_of_training():
    def formula(step):
        if step < 20:
            return 0.4 * (step + 1) / 21
        return 0.4 * (1 + math.cos(math.pi * min(1, (step - 20) / 80))) / 2

    result = rates(schedule="cosine", learning_rate=0.4, warmup_steps=20, train_steps=100)
    assert result == pytest.approx([formula(step) for step in range(130)], abs=1e-7)
    assert result[60] == pytest.approx(0.2)
    assert result[100:] == pytest.approx([0] * 30, abs=1e-7)


def test_the_exponential_schedule_falls_by_equal_factors_to_a_hundredth():
    result = rates(schedule="exponential", learning_rate=0.4, warmup_steps=20, train_steps=100)
    assert result[20] == pytest.approx(0.4)
    assert result[60] == pytest.approx(0.04)
    assert result[100:] == pytest.approx([0.004] * 30)
    factors = np.divide(result[21:101], result[20:100])
    assert factors == pytest.approx(0.01 ** (1 / 80), rel=1e-5)


def test_the_piecewise_schedule_drops_to_a_tenth_after_half_and_after_three_quarters():
    result = rates(schedule="piecewise", learning_rate=0.4, warmup_steps=20, train_steps=100)
    assert result[20:] == pytest.approx([0.4] * 40 + [0.04] * 20 + [0.004] * 50)


def test_a_warm_up_longer_than_training_is_no_division_by_zero():
    result = rates(schedule="cosine", learning_rate=1.0, warmup_steps=50, train_steps=50)
    assert np.all(np.isfinite(result))


def built(name, **options):
    weights = keras.Variable([1.0, -2.0], name="weights")
    chosen = plain.options(name=name, learning_rate=0.1, **options)
    return weights, optimizers.build(chosen, [weights])


def updated(name, *gradients, **options):
    weights, optimizer = built(name, **options)
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient)], [weights])
    return weights.numpy()


def test_sgd_subtracts_rate_times_gradient():
    assert updated("sgd", [1.0, 3.0]) == pytest.approx([0.9, -2.3])


def test_momentum_adds_up_gradients():
    # velocity: -0.1, then 0.8 * -0.1 - 0.1 * 2 = -0.28
    assert updated("momentum", [1.0, 0.0], [2.0, 0.0], momentum=0.8) == pytest.approx([0.62, -2.0])


def test_nesterov_looks_ahead():
    # velocity -0.1, moved by 0.8 * -0.1 - 0.1; then velocity -0.28, moved by 0.8 * -0.28 - 0.2
    after = updated("nesterov", [1.0, 0.0], [2.0, 0.0], momentum=0.8)
    assert after == pytest.approx([1 - 0.18 - 0.424, -2.0])


def test_lion_moves_by_the_rate_whatever_the_size_of_the_gradient():
    assert updated("lion", [1e-3, -7.0]) == pytest.approx([0.9, -1.9])


def test_weight_decay_takes_a_share_of_matrices_and_leaves_biases_and_scales_out():
    matrix = keras.Variable([[2.0, -4.0]], name="kernel")
    bias = keras.Variable([2.0, -4.0], name="bias")
    options = plain.options(name="sgd", learning_rate=0.1, weight_decay=0.5)
    optimizer = optimizers.build(options, [matrix, bias])
    optimizer.apply([tf.zeros([1, 2]), tf.zeros([2])], [matrix, bias])
    assert matrix.numpy()[0] == pytest.approx([2.0 - 0.1 * 0.5 * 2, -4.0 + 0.1 * 0.5 * 4])
    assert bias.numpy() == pytest.approx([2.0, -4.0])


def test_averages_follow_the_weights_and_take_their_place_on_request():
    weights, optimizer = built("sgd", ema_momentum=0.75)
    expected = None
    for _ in range(4):
        optimizer.apply([tf.constant([1.0, -2.0])], [weights])
        now = weights.numpy().astype(np.float64)
        expected = now if expected is None else 0.75 * expected + 0.25 * now
    [(variable, average)] = optimizers.averages(optimizer)
    assert variable is weights
    assert average.numpy() == pytest.approx(expected)
    before = weights.numpy()
    with averaged(SimpleNamespace(network=None, optimizer=optimizer)):
        assert weights.numpy() == pytest.approx(expected)
        assert not np.allclose(weights.numpy(), before)
    assert weights.numpy().tobytes() == before.tobytes()


def test_without_averages_the_weights_stay_where_averages_are_asked_for():
    weights, optimizer = built("sgd")
    before = weights.numpy()
    with averaged(SimpleNamespace(network=None, optimizer=optimizer)):
        assert weights.numpy().tobytes() == before.tobytes()


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_the_first_step_of_adam_is_as_long_as_the_rate(name):
    assert updated(name, [1e-3, -7.0]) == pytest.approx([0.9, -1.9], abs=2e-2)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_builds_and_its_rate_is_no_variable_of_a_checkpoint(name, schedule):
    _, optimizer = built(name, schedule=schedule)
    paths = [variable.path for variable in optimizer.variables]
    assert not [path for path in paths if "learning_rate" in path]
    assert len(set(paths)) == len(paths)
    assert [path for path in paths if "weights" in path] or name == "sgd"


def test_the_rate_in_use_is_that_of_the_number_of_steps_taken():
    weights, optimizer = built("sgd", warmup_steps=3)
    used = []
    for _ in range(5):
        used.append(float(optimizer.learning_rate))
        optimizer.apply([tf.constant([0.0, 0.0])], [weights])
    assert used == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1])


ANY = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.01),
    "adamw": lambda: keras.optimizers.AdamW(0.1, use_ema=True, ema_momentum=0.5),
    "lion": lambda: keras.optimizers.Lion(0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.1),
    "ftrl": lambda: keras.optimizers.Ftrl(0.1),
}


def moved(optimizer, factors, steps=1):
    variables = [keras.Variable([1.0, -2.0], name=name) for name in ("slow", "fast")]
    optimizer = optimizers.prepare(optimizer, variables)
    before = [v.numpy() for v in variables]
    for _ in range(steps):
        optimizers.apply(optimizer, [tf.constant([0.3, -7.0])] * 2, variables, factors)
    return [v.numpy() - b for v, b in zip(variables, before, strict=True)], variables, optimizer


@pytest.mark.parametrize("name", ANY)
def test_a_learning_rate_multiplier_scales_the_update_of_every_optimizer(name):
    (slow, fast), _, _ = moved(ANY[name](), [0.25, 1.0])
    (plain, _), _, _ = moved(ANY[name](), [1.0, 1.0])
    assert fast.tobytes() == plain.tobytes()
    assert slow == pytest.approx(0.25 * plain, rel=1e-5)


def test_averages_are_of_the_scaled_variables():
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    _, (slow, _), optimizer = moved(optimizer, [0.5, 1.0], steps=2)
    after_one = np.array([1.0, -2.0]) - 0.5 * 0.1 * np.array([0.3, -7.0])
    average = {v.path: a.numpy() for v, a in optimizers.averages(optimizer)}["slow"]
    assert average == pytest.approx(0.5 * after_one + 0.5 * slow.numpy(), rel=1e-6)


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ({"clipnorm": 1.0}, "--clip_variable_norm"),
        ({"global_clipnorm": 1.0}, "--clip_norm"),
        ({"clipvalue": 1.0}, "--clip_value"),
        ({"gradient_accumulation_steps": 2}, "--accumulate_steps"),
        ({"use_ema": True, "ema_overwrite_frequency": 2}, "averages"),
    ],
)
def test_what_keras_does_on_each_replica_alone_is_refused(argument, instead):
    with pytest.raises(UserError, match=rf"optimizer 'adam\w*': {list(argument)[-1]} .*{instead}"):
        optimizers.adopt(keras.optimizers.Adam(0.1, **argument))


def test_a_scaled_loss_is_refused():
    with pytest.raises(UserError, match="--precision=bfloat16"):
        optimizers.adopt(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()))


def test_a_rate_that_is_a_number_is_no_variable_of_a_checkpoint():
    _, _, optimizer = moved(keras.optimizers.Adam(0.1), [1.0, 1.0])
    assert float(optimizer.learning_rate) == pytest.approx(0.1)
    assert not [v.path for v in optimizer.variables if "learning_rate" in v.path]
