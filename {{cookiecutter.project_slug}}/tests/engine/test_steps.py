import time
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import (
    batches,
    dataset,
    gradients,
    optimizers,
    random,
)
from {{ cookiecutter.__package_name }}.engine.data import records
from {{ cookiecutter.__package_name }}.engine.examples import open_split
from {{ cookiecutter.__package_name }}.engine.run import steps
from {{ cookiecutter.__package_name }}.vocab import vocab

import plain

ONE_DEVICE = tf.distribute.get_strategy()
STEPS = 100
EXAMPLES, WIDTH, CLASSES = 500, 20, 10


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Points that stand in their class's own corner, with noise; whatever the task of this project."""
    folder = tmp_path_factory.mktemp("points")
    generator = np.random.default_rng(0)
    corners = generator.choice([-1.0, 1.0], (CLASSES, WIDTH))
    labels = generator.integers(0, CLASSES, EXAMPLES)
    points = (corners[labels] + generator.normal(size=(EXAMPLES, WIDTH))).astype(np.float32)
    features = {
        vocab.x: dataset.Feature("float32", (WIDTH,)),
        vocab.y: dataset.Feature("int64", ()),
    }
    examples = [{vocab.x: x, vocab.y: y} for x, y in zip(points, labels, strict=True)]
    written = records.write_split(folder, "train", examples, features, EXAMPLES, 1)
    dataset.write(
        folder,
        source="points",
        seed=0,
        features=features,
        classes=[str(label) for label in range(CLASSES)],
        statistics={},
        splits=dict.fromkeys(("train", "validation", "test"), written),
    )
    return open_split(dataset.load(folder), "train")


class Plain:
    """A classifier without batch normalisation, which would see parts of a batch one at a time."""

    def __init__(self, options):
        keras.utils.set_random_seed(0)
        self.seed = 3
        x = keras.Input((WIDTH,))
        h = keras.layers.Dense(32, "silu", name="dense")(x)
        h = random.Dropout(0.3, name="dropout")(h)
        self.network = keras.Model(x, keras.layers.Dense(CLASSES, name="logits")(h))
        self.options = options
        self.optimizer = optimizers.build(options, self.network.trainable_variables)

    def loss(self, x, y, training=False):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, self.network(x, training=training))

    def optimize(self, x, y):
        return gradients.minimize(self, x, y)


def weights_after(split, accumulate_steps):
    options = plain.options(clip_norm=0.5, accumulate_steps=accumulate_steps)
    model: Any = Plain(options)
    batched = batches.training(
        split, ONE_DEVICE, batch_size=64, seed=3, accumulate_steps=accumulate_steps
    )
    steps.Train(model, ONE_DEVICE, iter(batched))(STEPS)
    assert int(model.optimizer.iterations) == STEPS
    return model.network.get_weights()


@pytest.mark.slow
def test_a_batch_in_four_parts_trains_like_the_whole_one(split):
    whole, in_parts = weights_after(split, 1), weights_after(split, 4)
    for one, other in zip(whole, in_parts, strict=True):
        assert np.max(np.abs(one - other)) <= 1e-5


def delayed(value, seconds):
    """Returns ``value`` so many seconds later."""

    def wait(array):
        time.sleep(seconds)
        return array

    return tf.ensure_shape(tf.numpy_function(wait, [value], value.dtype), value.shape)


class Slow(Plain):
    """Takes longer for a step than the slow input below for a batch."""

    def optimize(self, x, y):
        return super().optimize(delayed(x, 0.4), y)


@pytest.fixture(scope="module")
def ready(split):
    """Batches that are there at once."""
    batched = batches.training(split, ONE_DEVICE, batch_size=64, seed=3).take(12).cache()
    list(batched)
    return batched


@pytest.fixture(scope="module")
def slow_input(ready):
    return ready.map(lambda batch: {**batch, vocab.x: delayed(batch[vocab.x], 0.2)})


def waited(batched, of=Plain):
    """Returns the seconds that a step waited for its input."""
    model: Any = of(plain.options())
    train = steps.Train(model, ONE_DEVICE, iter(batched))
    rows, _ = train(10)
    return np.median(dict(zip(train.names, rows.numpy().T, strict=True))[vocab.input_wait])


def test_steps_wait_for_input_that_takes_longer_than_they_do(ready, slow_input):
    assert waited(slow_input) > 0.1
    assert waited(ready) < 0.1


def test_a_batch_comes_while_a_step_is_computed(slow_input):
    assert waited(slow_input, of=Slow) < 0.1


def test_the_gradients_of_the_last_step_come_back_on_request(split):
    model: Any = Plain(plain.options(report_gradients=True))
    iterator = iter(batches.training(split, ONE_DEVICE, batch_size=64, seed=3))
    train = steps.Train(model, ONE_DEVICE, iterator)
    rows, last = train(3)
    assert set(last) == {f"{vocab.gradient}/{v.path}" for v in model.network.trainable_variables}
    norm = np.sqrt(sum(np.sum(np.square(value)) for value in last.values()))
    reported = dict(zip(train.names, rows.numpy()[-1], strict=True))
    assert norm == pytest.approx(reported[vocab.gradient_norm], rel=1e-5)
