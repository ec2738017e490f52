from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import (
    batches,
    gradients,
    optimizers,
    random,
    steps,
)
from {{ cookiecutter.__package_name }}.engine.options import OptimizerOptions
from {{ cookiecutter.__package_name }}.vocab import vocab

ONE_DEVICE = tf.distribute.get_strategy()
STEPS = 100


class Plain:
    """A classifier without batch normalisation, which would see parts of a batch one at a time."""

    def __init__(self, example, options):
        keras.utils.set_random_seed(0)
        x = keras.Input(example.shape)
        h = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(x))
        h = random.Dropout(0.3, name="dropout")(keras.layers.Dense(32, "silu", name="dense")(h))
        self.network = keras.Model(x, keras.layers.Dense(10, name="logits")(h))
        self.options = options
        self.optimizer = optimizers.build(options, self.network.trainable_variables)

    def loss(self, x, y, training=False):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, self.network(x, training=training))

    def optimize(self, x, y):
        return gradients.minimize(
            self.loss,
            x,
            y,
            network=self.network,
            optimizer=self.optimizer,
            options=self.options,
            seed=3,
        )


def weights_after(split, accumulate_steps):
    options = OptimizerOptions(clip_norm=0.5, accumulate_steps=accumulate_steps)
    model: Any = Plain(split.fetch(tf.constant([0], tf.int64))[vocab.x][0], options)
    batched = batches.training(
        split, ONE_DEVICE, batch_size=64, seed=3, accumulate_steps=accumulate_steps
    )
    steps.make_train(model, ONE_DEVICE)(iter(batched), tf.constant(STEPS))
    assert int(model.optimizer.iterations) == STEPS
    return model.network.get_weights()


@pytest.mark.slow
def test_a_batch_in_four_parts_trains_like_the_whole_one(prepared):
    split = batches.open_split(prepared, "train")
    whole, in_parts = weights_after(split, 1), weights_after(split, 4)
    for one, other in zip(whole, in_parts, strict=True):
        assert np.max(np.abs(one - other)) <= 1e-5


def test_the_gradients_of_the_last_step_come_back_on_request(prepared):
    split = batches.open_split(prepared, "train")
    example = split.fetch(tf.constant([0], tf.int64))[vocab.x][0]
    model: Any = Plain(example, OptimizerOptions(report_gradients=True))
    iterator = iter(batches.training(split, ONE_DEVICE, batch_size=64, seed=3))
    rows, last = steps.make_train(model, ONE_DEVICE)(iterator, tf.constant(3))
    assert set(last) == {f"{vocab.gradient}/{v.path}" for v in model.network.trainable_variables}
    norm = np.sqrt(sum(np.sum(np.square(value)) for value in last.values()))
    reported = dict(zip(steps.PER_STEP, rows.numpy()[-1], strict=True))
    assert norm == pytest.approx(reported[vocab.gradient_norm], rel=1e-5)
