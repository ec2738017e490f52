import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }} import data
from {{ cookiecutter.__package_name }}.engine import random

SHAPE = (32, 20, 10, 3)  # a tenth: 2 rows, 1 column


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, SHAPE).astype(np.uint8)


def augmented(images, *, seed=3, step=7, first=0):
    batch = {"x": tf.constant(images), "y": tf.range(len(images))}
    step, first = tf.constant(step, tf.int64), tf.constant(first, tf.int64)
    return data.augment(batch, seed, step, first)


def test_each_image_is_shifted_by_what_was_drawn_for_it(images):
    drawn = random.uniform(3, "augment", tf.constant(7), tf.constant(0), [32, 2]).numpy()
    down = np.floor(drawn[:, 0] * 5).astype(int) - 2
    right = np.floor(drawn[:, 1] * 3).astype(int) - 1
    assert set(down) == {-2, -1, 0, 1, 2}
    assert set(right) == {-1, 0, 1}
    padded = np.pad(images, [(0, 0), (2, 2), (1, 1), (0, 0)], mode="edge")
    expected = [
        image[2 + i : 2 + i + 20, 1 + j : 1 + j + 10]
        for image, i, j in zip(padded, down, right, strict=True)
    ]
    out = augmented(images)
    assert out["x"].dtype == tf.uint8
    assert np.array_equal(out["x"], expected)
    assert np.array_equal(out["y"], np.arange(32))


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_what_replicas_make_joined_is_what_one_device_makes(images, replicas):
    share = 32 // replicas
    parts = [augmented(images[i : i + share], first=i)["x"] for i in range(0, 32, share)]
    assert np.array_equal(np.concatenate(parts), augmented(images)["x"])


@pytest.mark.parametrize("other", [{"seed": 4}, {"step": 8}, {"first": 32}])
def test_another_seed_step_or_position_gives_other_shifts(images, other):
    changed = augmented(images)["x"].numpy() != augmented(images, **other)["x"].numpy()
    assert np.mean(np.any(changed, axis=(1, 2, 3))) > 0.5


def test_tiny_images_are_shifted_by_one_pixel_at_most():
    images = np.arange(64, dtype=np.uint8).reshape(1, 8, 8, 1).repeat(200, axis=0)
    corners = set(augmented(images)["x"].numpy()[:, 4, 4, 0].tolist())
    assert corners == {36 + 8 * i + j for i in (-1, 0, 1) for j in (-1, 0, 1)}
