import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }} import data
from {{ cookiecutter.__package_name }}.engine import random

X = {
    "age": np.arange(1, 401, dtype=np.float32),
    "town": np.array([f"town {i}" for i in range(400)], object),
}


def augmented(first=0, count=400, *, seed=3, step=7):
    rows = slice(first, first + count)
    batch = {"x": {k: tf.constant(v[rows]) for k, v in X.items()}, "y": tf.range(count)}
    step, first = tf.constant(step, tf.int64), tf.constant(first, tf.int64)
    out = data.augment(batch, seed, step, first)
    assert np.array_equal(out["y"], np.arange(count))
    return {k: v.numpy() for k, v in out["x"].items()}


def test_the_values_that_were_drawn_are_missing_and_the_others_are_as_they_were():
    drawn = random.uniform(3, "augment", tf.constant(7), tf.constant(0), [400, 2]).numpy()
    out = augmented()
    assert 20 <= np.sum(drawn[:, 0] < 0.1) <= 60
    np.testing.assert_array_equal(out["age"], np.where(drawn[:, 0] < 0.1, np.nan, X["age"]))
    texts = np.array([text.encode() for text in X["town"]], object)
    np.testing.assert_array_equal(out["town"], np.where(drawn[:, 1] < 0.1, b"", texts))


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_what_replicas_make_joined_is_what_one_device_makes(replicas):
    share = 400 // replicas
    parts = [augmented(first, share) for first in range(0, 400, share)]
    for name, values in augmented().items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values)


@pytest.mark.parametrize("other", [{"seed": 4}, {"step": 8}])
def test_another_seed_or_step_hides_other_values(other):
    assert np.any(np.isnan(augmented()["age"]) != np.isnan(augmented(**other)["age"]))
