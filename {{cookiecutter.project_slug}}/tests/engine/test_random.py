import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import random


def draw(shape, *, seed=3, purpose="dropout_1", step=7, first=0):
    return random.uniform(seed, purpose, tf.constant(step), tf.constant(first), shape).numpy()


@pytest.mark.parametrize("values", [(8,), (3,), (5, 7, 2), (1,)])
@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_what_replicas_draw_joined_is_what_one_device_draws(values, replicas):
    whole = draw([16, *values])
    share = 16 // replicas
    parts = [draw([share, *values], first=i * share) for i in range(replicas)]
    assert whole.shape == (16, *values)
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert len(np.unique(whole)) > 0.99 * whole.size


def test_draws_are_those_of_tensorflows_stateless_philox():
    drawn = draw([6, 8], seed=0, purpose="", step=5)  # seed 0 and no purpose: key (0, step)
    expected = tf.random.stateless_uniform([6, 8], seed=[0, 5], alg="philox")
    assert drawn.tobytes() == expected.numpy().tobytes()


def test_draws_are_spread_evenly_over_zero_to_one():
    drawn = draw([1000, 50]).ravel()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert np.histogram(drawn, bins=10, range=(0, 1))[0] == pytest.approx(5000, rel=0.06)


@pytest.mark.parametrize(
    "other", [{"seed": 4}, {"step": 8}, {"purpose": "dropout_2"}, {"first": 64}]
)
def test_another_seed_step_purpose_or_position_draws_independently(other):
    correlation = np.corrcoef(draw([64, 40]).ravel(), draw([64, 40], **other).ravel())[0, 1]
    assert abs(correlation) < 0.08


def test_neighbouring_seeds_and_steps_never_meet():
    drawn = {draw([1, 8], seed=s, step=t).tobytes() for s in range(20) for t in range(20)}
    assert len(drawn) == 400


def test_drawing_in_a_graph_gives_the_same_bits():
    @tf.function
    def compiled(step, first, examples):
        return random.uniform(3, "dropout_1", step, first, [examples, 6])

    drawn = compiled(tf.constant(7, tf.int64), tf.constant(2), tf.constant(4))
    assert drawn.numpy().tobytes() == draw([4, 6], first=2).tobytes()


def dropped(x, rate=0.25, *, name="dropout_1", step=7, first=0):
    layer = random.Dropout(rate, name=name)
    with random.draws(3, tf.constant(step), tf.constant(first)):
        return layer(x, training=True).numpy()


def test_dropout_drops_its_share_and_scales_the_rest():
    out = dropped(tf.ones([400, 50]))
    kept = out != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.01)
    assert out[kept] == pytest.approx(1 / 0.75)
    assert out.mean() == pytest.approx(1, abs=0.015)


def test_the_masks_of_replicas_joined_are_the_mask_of_one_device():
    x = tf.ones([16, 5, 3])
    parts = [dropped(x[i : i + 4], first=i) for i in range(0, 16, 4)]
    assert np.concatenate(parts).tobytes() == dropped(x).tobytes()


@pytest.mark.parametrize("other", [{"name": "dropout_2"}, {"step": 8}, {"first": 100}])
def test_another_layer_step_or_position_gets_another_mask(other):
    x = tf.ones([100, 20])
    same = np.mean((dropped(x) != 0) == (dropped(x, **other) != 0))
    assert same == pytest.approx(0.75**2 + 0.25**2, abs=0.05)


def test_dropout_changes_nothing_in_inference_or_at_rate_zero():
    x = tf.random.stateless_normal([4, 5], [1, 2])
    assert np.array_equal(random.Dropout(0.5)(x, training=False), x)
    assert np.array_equal(random.Dropout(0.5)(x), x)
    assert np.array_equal(random.Dropout(0.0)(x, training=True), x)


def test_dropout_outside_draws_is_an_error_that_names_the_layer():
    layer = random.Dropout(0.5, name="dropout_9")
    with pytest.raises(RuntimeError, match=r"dropout_9 draws random numbers.*random\.draws"):
        layer(tf.ones([2, 2]), training=True)


def test_draws_end_with_their_block_and_may_be_nested():
    layer = random.Dropout(0.5, name="dropout_1")
    x = tf.ones([8, 8])
    with random.draws(1, tf.constant(1), tf.constant(0)):
        outer = layer(x, training=True)
        with random.draws(1, tf.constant(2), tf.constant(0)):
            assert not np.array_equal(layer(x, training=True), outer)
        assert np.array_equal(layer(x, training=True), outer)
    with pytest.raises(RuntimeError, match=r"random\.draws"):
        layer(x, training=True)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_that_drops_all_or_less_than_nothing_is_refused(rate):
    with pytest.raises(ValueError, match=f"not {rate}"):
        random.Dropout(rate)


def test_dropout_is_rebuilt_from_its_configuration():
    again = random.Dropout.from_config(random.Dropout(0.3, name="dropout_1").get_config())
    assert (again.rate, again.name) == (0.3, "dropout_1")
