import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import gradients, optimizers, random
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.trainable import (
    freeze_others,
    multipliers,
    refuse_unmatched,
    set_trainable,
)

import plain

X = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
Y = np.arange(8) % 3


def made(trainable, **options):
    """Returns a small network, of which this is trained, and its optimizer."""
    x = h = keras.Input((5,))
    for i in (1, 2):
        h = keras.layers.Dense(6, name=f"dense_{i}")(h)
        h = keras.layers.BatchNormalization(name=f"normalization_{i}")(h)
    h = random.Dropout(0.5)(h)
    network = keras.Model(x, keras.layers.Dense(3, name="logits")(h))
    set_trainable(network, trainable)
    chosen = plain.options(learning_rate=0.1, **options)
    return network, optimizers.build(chosen, network.trainable_variables)


def train_some_steps(trainable):
    """Returns the variables by path before and after three steps."""
    network, optimizer = made(trainable)

    def loss(x, y, training=False):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, network(x, training=training))

    before = {v.path: v.numpy() for v in network.variables}
    for _ in range(3):
        gradients.minimize(
            loss, X, Y, network=network, optimizer=optimizer, options=plain.options(), seed=0
        )
    return before, {v.path: v.numpy() for v in network.variables}


def changed(before, after):
    return {path for path in before if before[path].tobytes() != after[path].tobytes()}


def test_only_the_chosen_variables_change_and_frozen_statistics_stay():
    assert changed(*train_some_steps("logits/.*")) == {"logits/kernel", "logits/bias"}


def test_a_part_of_a_layer_can_be_trained():
    assert changed(*train_some_steps("dense_1/bias")) == {"dense_1/bias"}


def test_without_a_pattern_everything_changes_moving_statistics_too():
    before, after = train_some_steps("")
    assert changed(before, after) == set(before)


def test_the_statistics_of_a_trained_normalisation_move():
    assert changed(*train_some_steps("normalization_2/.*")) == {
        f"normalization_2/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")
    }


def test_the_optimizer_keeps_state_for_trained_variables_only():
    _, optimizer = made("logits/.*", name="momentum")
    assert [v.path for v in optimizer.variables if "logits" in v.path]
    assert not [v.path for v in optimizer.variables if "dense" in v.path]


def test_a_pattern_without_a_match_lists_the_variables():
    x = keras.Input((2,))
    network = keras.Model(x, keras.layers.Dense(1, name="head")(x))
    with pytest.raises(UserError, match=r"--trainable=haed/\.\* .*head/bias, head/kernel"):
        set_trainable(network, "haed/.*")


def test_a_network_within_a_network_is_frozen_too():
    inner_input = keras.Input((2,))
    h = keras.layers.Dense(2, name="inner_dense")(inner_input)
    h = keras.layers.BatchNormalization(name="inner_normalization")(h)
    inner = keras.Model(inner_input, h, name="backbone")
    x = keras.Input((2,))
    network = keras.Model(x, keras.layers.Dense(1, name="head")(inner(x)))
    set_trainable(network, "head/.*")
    assert {v.path for v in network.trainable_variables} == {"head/kernel", "head/bias"}
    statistics = inner.get_layer("inner_normalization").moving_mean.numpy()
    network(np.ones([4, 2]), training=True)
    assert inner.get_layer("inner_normalization").moving_mean.numpy().tobytes() == (
        statistics.tobytes()
    )


class Block(keras.layers.Layer):
    """A layer with layers in a list, and a variable of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.parts = [
            keras.layers.Dense(2, name="dense"),
            keras.layers.BatchNormalization(name="norm"),
        ]

    def build(self, shape):
        self.scale = self.add_weight(shape=(), name="scale")
        for part in self.parts:
            part.build(shape)

    def call(self, x, training=False):
        return self.scale * self.parts[1](self.parts[0](x), training=training)


def block(name="block"):
    layer = Block(name=name)
    layer.build((None, 2))
    return layer


@pytest.mark.parametrize(
    ("pattern", "trained"),
    [
        (".*/scale", {"block/scale"}),
        (".*/dense/.*", {"block/dense/kernel", "block/dense/bias"}),
        ("block/(scale|norm/beta)", {"block/scale", "block/norm/beta"}),
    ],
)
def test_layers_and_variables_inside_of_ones_own_layer_can_be_chosen(pattern, trained):
    layer = block()
    set_trainable(layer, pattern)
    assert {v.path for v in layer.trainable_variables} == trained
    before = layer.parts[1].moving_mean.numpy()
    layer(np.ones([4, 2]), training=True)
    moved = (before != layer.parts[1].moving_mean.numpy()).any()
    assert moved == ("block/norm/beta" in trained)


def test_a_pattern_chooses_among_several_networks_by_their_names():
    networks = {name: block() for name in ("inference", "teacher")}
    set_trainable(networks, "block/dense/kernel|teacher/block/.*")
    own, teacher = networks.values()
    assert [v.path for v in own.trainable_variables] == ["block/dense/kernel"]
    assert len(teacher.trainable_variables) == 5
    set_trainable(networks, "block/.*")
    assert not teacher.trainable_variables
    with pytest.raises(UserError, match=r"there are block/dense/kernel$"):
        set_trainable(networks, "teacher/.*")


def test_a_list_of_many_variables_is_cut_in_a_message_after_the_nearest():
    network = keras.Sequential(
        [keras.Input((2,)), *(keras.layers.Dense(2, name=f"dense_{i}") for i in range(100))]
    )
    path = network.trainable_variables[140].path
    with pytest.raises(UserError, match=rf"nearest: {path}.*, \.\.\. \(200 in all\)$") as error:
        set_trainable(network, f"{path}s")
    assert str(error.value).count("dense_") == 1 + 3 + 5


def test_the_name_of_the_last_release_still_works():
    layer = block()
    freeze_others(layer, ".*/scale")
    assert [v.path for v in layer.trainable_variables] == ["block/scale"]


PATHS = ["conv_1/kernel", "conv_2/kernel", "dense/kernel", "dense/bias"]


def test_multipliers_are_one_where_nothing_matches_and_the_last_that_matches_counts():
    assert multipliers([("conv_.*", 0.1), ("conv_2/.*", 0.5)], PATHS) == [0.1, 0.5, 1.0, 1.0]
    assert multipliers([], PATHS) == [1.0] * 4


@pytest.mark.parametrize("flag", ["--gradient_multipliers", "--learning_rate_multipliers"])
def test_a_pattern_of_a_multiplier_without_a_match_names_the_flag_and_the_nearest(flag):
    with pytest.raises(UserError, match=rf"{flag}: denes/\.\* .*nearest: dense/"):
        refuse_unmatched(flag, [("denes/.*", 0.1)], PATHS)
