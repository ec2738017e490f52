import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import gradients, layers, optimizers, random
from {{ cookiecutter.__package_name }}.engine.distribute import placement
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.options import PlacementOptions

import plain

X = np.random.default_rng(0).uniform(size=(32, 32, 32, 3)).astype(np.float32)
Y = np.arange(32) % 4


def around(layer, shape=(4, 3)):
    """A network of one layer."""
    x = keras.Input(shape)
    return keras.Model(x, layer(x), name="network")


def weights_of(network):
    return {v.path: v.numpy() for v in network.weights}


def application(convert):
    """A small network of `keras.applications`, with dropout and batch normalisation."""
    keras.utils.set_random_seed(1)
    network = keras.applications.MobileNet(
        weights=None, input_shape=(32, 32, 3), alpha=0.25, dropout=0.3, classes=4
    )
    return layers.for_replicas(network) if convert else network


def trained_on(devices, convert):
    """Returns the losses of three steps, and how the weights have changed."""
    # Large steps of a network that is new double a difference from rounding many times over.
    options = plain.options(name="sgd", learning_rate=1e-5)
    keras.utils.clear_session()  # layers without names get them anew, as in a new process
    strategy = placement.strategy(PlacementOptions(devices=devices))
    with strategy.scope():
        network = application(convert)
        optimizer = optimizers.build(options, network.trainable_variables)
    before = weights_of(network)

    def loss(x, y, training=False):
        probabilities = network(x, training=training)
        return keras.losses.sparse_categorical_crossentropy(y, probabilities)

    @tf.function
    def step():
        def own_part():
            replicas = strategy.num_replicas_in_sync
            index = tf.distribute.get_replica_context().replica_id_in_sync_group
            size = len(X) // replicas
            x, y = (tf.constant(a)[index * size : (index + 1) * size] for a in (X, Y))
            return gradients.minimize(
                loss, x, y, network=network, optimizer=optimizer, options=options, seed=2
            )["loss"]

        return strategy.experimental_local_results(strategy.run(own_part))[0]

    losses = [float(step()) for _ in range(3)]
    return losses, {path: value - before[path] for path, value in weights_of(network).items()}


def largest(changes):
    return max(np.abs(change).max() for change in changes.values())


def difference(first, second):
    return largest({path: first[path] - second[path] for path in first})


@pytest.mark.slow
def test_an_application_trains_alike_on_two_devices_when_it_is_converted():
    (one, changes), (two, others) = (trained_on(d, True) for d in ("cpu", "cpu:2"))
    assert two == pytest.approx(one, abs=1e-4)
    assert difference(changes, others) < 1e-4 * largest(changes)
    (one, changes), (two, others) = (trained_on(d, False) for d in ("cpu", "cpu:2"))
    assert abs(two[0] - one[0]) > 1e-2  # what the conversion is for
    assert difference(changes, others) > 1e-2 * largest(changes)


def nested():
    """A network with networks in it, all that can be converted, and an operation that is no layer."""
    inner = keras.Sequential(
        [
            keras.layers.Dense(6, name="dense"),
            keras.layers.BatchNormalization(name="normalization"),
            keras.layers.Dropout(0.25, noise_shape=(None, 1, None), name="dropout"),
        ],
        name="inner",
    )
    x = h = keras.Input((4, 6))
    functional = keras.Model(
        x, keras.layers.SpatialDropout1D(0.5, name="spatial")(inner(h)), name="f"
    )
    x = keras.Input((4, 6))
    h = functional(x) * 2.0 + inner(x)
    statistics = keras.layers.BatchNormalization(name="each")
    h = keras.layers.TimeDistributed(statistics, name="distributed")(h)
    lstm = keras.layers.Bidirectional(keras.layers.LSTM(3, name="lstm"), name="both")
    known = keras.layers.Normalization(name="known")
    known.adapt(np.arange(12.0).reshape(2, 6))
    network = keras.Model(x, known(lstm(h)), name="network")
    for i, variable in enumerate(network.trainable_weights):
        variable.assign(np.random.default_rng(i).normal(size=variable.shape))
    return network


def test_a_converted_network_is_the_same_but_for_what_depends_on_replicas():
    network = nested()
    network.get_layer("inner").get_layer("dense").kernel.trainable = False
    network.get_layer("both").trainable = False
    copy = layers.for_replicas(network)
    assert copy.name == network.name
    assert list(weights_of(copy)) == list(weights_of(network))
    assert [v.path for v in copy.trainable_variables] == [
        v.path for v in network.trainable_variables
    ]
    for path, value in weights_of(network).items():
        np.testing.assert_array_equal(weights_of(copy)[path], value)
    x = np.random.default_rng(0).normal(size=(2, 4, 6))
    np.testing.assert_array_equal(copy(x), network(x))
    assert layers.unsafe(copy) == []
    assert isinstance(copy.get_layer("inner").get_layer("dropout"), random.Dropout)
    assert copy.get_layer("f").get_layer("inner") is copy.get_layer("inner")  # shared as before
    assert len(layers.unsafe(network)) == 4  # and the network is as it was


def test_a_converted_network_can_be_saved_and_loaded_by_keras(tmp_path):
    x = keras.Input((4, 3))
    h = keras.layers.TimeDistributed(keras.layers.BatchNormalization(name="each"))(x)
    copy = layers.for_replicas(keras.Model(x, keras.layers.SpatialDropout1D(0.5)(h)))
    copy.save(tmp_path / "network.keras")
    loaded = keras.saving.load_model(tmp_path / "network.keras")
    assert layers.unsafe(loaded) == []
    x = np.ones((2, 4, 3))
    np.testing.assert_array_equal(loaded(x), copy(x))


@pytest.mark.parametrize(
    ("layer", "shape", "shared"),
    [
        (keras.layers.Dropout(0.5), (5, 6), ()),
        (keras.layers.Dropout(0.5, noise_shape=(None, 1, None)), (5, 6), (1,)),
        (keras.layers.Dropout(0.5, noise_shape=(None, 1, 1, 1)), (3, 4, 6), (1, 2, 3)),
        (keras.layers.SpatialDropout1D(0.5), (5, 6), (1,)),
        (keras.layers.SpatialDropout2D(0.5), (3, 4, 6), (1, 2)),
        (keras.layers.SpatialDropout2D(0.5, data_format="channels_first"), (6, 3, 4), (2, 3)),
        (keras.layers.SpatialDropout3D(0.5), (2, 3, 4, 6), (1, 2, 3)),
    ],
)
def test_a_mask_is_shared_along_the_axes_of_the_layer_that_it_replaces(layer, shape, shared):
    network = around(layer, shape)
    copy = layers.for_replicas(network)
    ones = tf.ones((64, *shape))
    with random.draws(3, tf.constant(0), tf.constant(0)):
        masks = copy(ones, training=True).numpy()
    theirs = network(ones, training=True).numpy()
    for dropped in (masks, theirs):  # Keras's own layer has the properties that are checked of ours
        assert set(np.unique(dropped)) == {0.0, 2.0}
        for axis in range(1, dropped.ndim):
            alike = np.all(dropped == dropped.take([0], axis))
            assert alike == (axis in shared)
        assert dropped.mean() == pytest.approx(1, abs=0.4)
    with random.draws(3, tf.constant(0), tf.constant(48)):
        np.testing.assert_array_equal(copy(ones[48:], training=True), masks[48:])


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (keras.layers.GaussianNoise(0.1, name="a"), r"'a' \(GaussianNoise\): draws by itself"),
        (keras.layers.AlphaDropout(0.1, name="a"), r"'a' \(AlphaDropout\): draws by itself"),
        (keras.layers.RandomFlip(name="a"), r"'a' \(RandomFlip\): draws by itself"),
        (keras.layers.LSTM(2, dropout=0.1, name="a"), r"'a/lstm_cell\w*' \(LSTMCell\): draws"),
        (
            keras.layers.TimeDistributed(keras.layers.Dropout(0.1, name="b"), name="a"),
            r"'a/b' \(Dropout\): draws by itself",
        ),
        (
            keras.layers.Dropout(0.1, noise_shape=(1, None, None), name="a"),
            r"'a' \(Dropout\).*examples share no mask",
        ),
    ],
)
def test_what_cannot_be_converted_is_refused_by_name(layer, message):
    network = around(layer, (4, 3, 3) if isinstance(layer, keras.layers.RandomFlip) else (4, 3))
    assert len(layers.unsafe(network)) == 1
    with pytest.raises(UserError, match=message) as error:
        layers.for_replicas(network)
    assert "random.Dropout" in str(error.value)


def test_dropout_inside_of_attention_is_found():
    attention = keras.layers.MultiHeadAttention(2, 3, dropout=0.1, name="attention")
    x = keras.Input((4, 3))
    network = keras.Model(x, attention(x, x))
    (found,) = layers.unsafe(network)
    assert found.startswith("layer 'attention/dropout")


@keras.saving.register_keras_serializable(package="tests")
class Residual(keras.layers.Layer):
    """A layer made of layers, as people write them."""

    def __init__(self, inner=("dense", "statistics"), **kwargs):
        super().__init__(**kwargs)
        dense, statistics = inner
        self.steps = [
            keras.layers.Dense(3, name=dense),
            keras.layers.BatchNormalization(name=statistics),
        ]

    def build(self, shape):
        for step in self.steps:
            step.build(shape)

    def call(self, x, training=False):
        h = x
        for step in self.steps:
            h = step(h, training=training) if step is self.steps[1] else step(h)
        return x + h


class Subclassed(keras.Model):
    """A network that Keras cannot take apart."""

    def __init__(self):
        super().__init__(name="mine")
        self.residual = Residual(name="residual")

    def call(self, x, training=False):
        return self.residual(x, training=training)


def test_statistics_inside_of_ones_own_layers_are_found_and_synchronised():
    network = around(Residual(name="residual"))
    (found,) = layers.unsafe(network)
    assert "'residual/statistics'" in found
    assert layers.unsafe(layers.for_replicas(network)) == []


def test_a_copy_whose_variables_would_have_other_paths_is_refused():
    network = around(Residual(inner=(None, "statistics"), name="residual"))
    with pytest.raises(
        UserError, match=r"a copy has residual/dense\w*/kernel in place of residual"
    ):
        layers.for_replicas(network)


def test_a_subclassed_network_is_checked_but_not_converted():
    network = Subclassed()
    network(np.ones((2, 3), np.float32))
    assert len(layers.unsafe(network)) == 1
    with pytest.raises(UserError, match=r"network 'mine' \(Subclassed\) cannot be copied"):
        layers.for_replicas(network)
    network.residual.steps[1].synchronized = True
    assert layers.unsafe(network) == []


@pytest.mark.parametrize(
    "layer",
    [
        keras.layers.BatchNormalization(synchronized=True),
        keras.layers.BatchNormalization(trainable=False),
        keras.layers.Dropout(0.0),
        keras.layers.LSTM(2),
        keras.layers.LayerNormalization(),
        random.Dropout(0.5),
    ],
    ids=lambda layer: layer.name,
)
def test_layers_that_replicas_compute_alike_are_not_listed(layer):
    assert layers.unsafe(around(layer)) == []
