import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import gradients, optimizers, random
from {{ cookiecutter.__package_name }}.engine.distribute import placement
from {{ cookiecutter.__package_name }}.engine.options import PlacementOptions

import plain

X = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0], [2.0, 2.0]], np.float32)
Y = np.array([[1.0], [0.0], [2.0], [-1.0]], np.float32)
WEIGHTS = np.array([[0.5], [-0.25]])
BIAS = 0.1


def linear(regularizer=None):
    x = keras.Input([2])
    out = keras.layers.Dense(1, name="dense", kernel_regularizer=regularizer)(x)
    network = keras.Model(x, out)
    network.get_layer("dense").set_weights([WEIGHTS, np.array([BIAS])])
    return network


def squared_error(network):
    def loss(x, y, training=False):
        return tf.reduce_sum((network(x, training=training) - y) ** 2, axis=-1)

    return loss


def by_hand(decay=0.0):
    """Loss and gradients of the mean squared error of the linear network, in plain numpy."""
    residuals = X @ WEIGHTS + BIAS - Y
    loss = np.mean(residuals**2) + decay * np.sum(WEIGHTS**2)
    return loss, 2 * X.T @ residuals / 4 + 2 * decay * WEIGHTS, 2 * residuals.mean(axis=0)


def step(network, optimizer, **options):
    return step_with(tf.constant(X), tf.constant(Y), network, optimizer, **options)


def step_with(x, y, network, optimizer, **options):
    return gradients.minimize(
        squared_error(network),
        x,
        y,
        network=network,
        optimizer=optimizer,
        options=plain.options(**options),
        seed=0,
    )


def sgd(network, **options):
    chosen = plain.options(name="sgd", learning_rate=0.1, **options)
    return optimizers.build(chosen, network.trainable_variables)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
def test_a_step_is_the_one_computed_by_hand(compiled):
    network = linear()
    optimizer = sgd(network)
    take = (
        (lambda: step(network, optimizer))
        if not compiled
        else tf.function(lambda: step(network, optimizer))
    )
    reported = take()
    loss, kernel, bias = by_hand()
    assert float(reported["loss"]) == pytest.approx(loss)
    norm = np.sqrt(np.sum(kernel**2) + np.sum(bias**2))
    assert float(reported["gradient_norm"]) == pytest.approx(norm)
    after = network.get_layer("dense").get_weights()
    assert after[0] == pytest.approx(WEIGHTS - 0.1 * kernel)
    assert after[1] == pytest.approx(BIAS - 0.1 * bias)


def test_gradients_are_scaled_down_to_the_clip_norm_and_the_norm_before_is_reported():
    network = linear()
    reported = step(network, sgd(network), clip_norm=0.5)
    _, kernel, bias = by_hand()
    norm = np.sqrt(np.sum(kernel**2) + np.sum(bias**2))
    assert norm > 0.5
    assert float(reported["gradient_norm"]) == pytest.approx(norm)
    assert network.get_layer("dense").get_weights()[0] == pytest.approx(
        WEIGHTS - 0.1 * kernel * 0.5 / norm
    )


def test_gradients_below_the_clip_norm_are_left_alone():
    network = linear()
    step(network, sgd(network), clip_norm=1000.0)
    assert network.get_layer("dense").get_weights()[0] == pytest.approx(
        WEIGHTS - 0.1 * by_hand()[1]
    )


def test_regularisation_is_part_of_the_loss_and_of_the_gradients():
    network = linear(keras.regularizers.L2(0.3))
    reported = step(network, sgd(network))
    loss, kernel, _ = by_hand(decay=0.3)
    assert float(reported["loss"]) == pytest.approx(loss)
    assert network.get_layer("dense").get_weights()[0] == pytest.approx(WEIGHTS - 0.1 * kernel)


def test_the_reported_rate_is_the_one_that_the_step_used():
    network = linear()
    optimizer = sgd(network, warmup_steps=3)
    used, moved = [], []
    for _ in range(4):
        bias = network.get_layer("dense").get_weights()[1]
        _, slope = expected_loss_and_slope(network)
        used.append(float(step(network, optimizer)["learning_rate"]))
        moved.append(float((bias - network.get_layer("dense").get_weights()[1])[0]) / slope)
    assert used == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert moved == pytest.approx(used, rel=1e-4)


def expected_loss_and_slope(network):
    kernel, bias = network.get_layer("dense").get_weights()
    residuals = X @ kernel + bias - Y
    return np.mean(residuals**2), 2 * residuals.mean()


def test_multipliers_scale_the_updates_of_the_variables_that_match():
    _, kernel, bias = by_hand()
    network = linear()
    step(network, sgd(network), gradient_multipliers=(("dense/kernel", 0.25),))
    after = network.get_layer("dense").get_weights()
    assert after[0] == pytest.approx(WEIGHTS - 0.1 * 0.25 * kernel)
    assert after[1] == pytest.approx(BIAS - 0.1 * bias)


def test_multipliers_come_before_clipping():
    _, kernel, bias = by_hand()
    network = linear()
    reported = step(network, sgd(network), gradient_multipliers=((".*", 3.0),), clip_norm=0.5)
    norm = 3 * np.sqrt(np.sum(kernel**2) + np.sum(bias**2))
    assert float(reported["gradient_norm"]) == pytest.approx(norm)
    after = network.get_layer("dense").get_weights()
    assert after[0] == pytest.approx(WEIGHTS - 0.1 * 3 * kernel * 0.5 / norm)


def test_own_transforms_come_before_clipping():
    _, kernel, bias = by_hand()
    network = linear()
    seen: list[str] = []

    def halve_kernels(gradients, variables):
        seen.extend(variable.path for variable in variables)
        return [g / 2 if len(g.shape) > 1 else g for g in gradients]

    gradients.minimize(
        squared_error(network),
        tf.constant(X),
        tf.constant(Y),
        network=network,
        optimizer=sgd(network),
        options=plain.options(clip_value=0.3),
        seed=0,
        transforms=[halve_kernels],
    )
    after = network.get_layer("dense").get_weights()
    assert seen == ["dense/kernel", "dense/bias"]
    assert after[0] == pytest.approx(WEIGHTS - 0.1 * np.clip(kernel / 2, -0.3, 0.3))
    assert after[1] == pytest.approx(BIAS - 0.1 * np.clip(bias, -0.3, 0.3))


def test_further_features_reach_the_loss_by_name_and_are_cut_like_the_batch():
    network = linear()
    seen: list[list[float]] = []

    def loss(x, y, training=False, weight=None):
        seen.append(weight.numpy().tolist())
        return weight * squared_error(network)(x, y, training)

    gradients.minimize(
        loss,
        tf.constant(X),
        tf.constant(Y),
        network=network,
        optimizer=sgd(network),
        options=plain.options(accumulate_steps=2),
        seed=0,
        weight=tf.constant([1.0, 2.0, 3.0, 4.0]),
    )
    assert seen == [[1.0, 2.0], [3.0, 4.0]]


def test_each_variable_is_clipped_by_its_own_norm():
    _, kernel, bias = by_hand()
    network = linear()
    step(network, sgd(network), clip_variable_norm=0.4)
    after = network.get_layer("dense").get_weights()
    assert after[0] == pytest.approx(WEIGHTS - 0.1 * kernel * 0.4 / np.linalg.norm(kernel))
    assert after[1] == pytest.approx(BIAS - 0.1 * bias * min(1, 0.4 / abs(bias[0])))


def test_values_are_clipped():
    _, kernel, bias = by_hand()
    network = linear()
    step(network, sgd(network), clip_value=0.3)
    after = network.get_layer("dense").get_weights()
    assert after[0] == pytest.approx(WEIGHTS - 0.1 * np.clip(kernel, -0.3, 0.3))
    assert after[1] == pytest.approx(BIAS - 0.1 * np.clip(bias, -0.3, 0.3))


@pytest.mark.parametrize("parts", [2, 4])
def test_a_batch_in_parts_takes_the_step_of_the_whole(parts):
    networks = linear(keras.regularizers.L2(0.3)), linear(keras.regularizers.L2(0.3))
    whole = step(networks[0], sgd(networks[0]), clip_norm=0.5)
    optimizer = sgd(networks[1])
    in_parts = step(networks[1], optimizer, clip_norm=0.5, accumulate_steps=parts)
    for name, value in whole.items():
        assert float(in_parts[name]) == pytest.approx(float(value))
    for one, other in zip(networks[0].get_weights(), networks[1].get_weights(), strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    assert int(optimizer.iterations) == 1


def test_a_part_draws_for_its_positions_in_the_batch():
    x = keras.Input([50])
    network = keras.Model(x, keras.layers.Dense(1, name="dense")(random.Dropout(0.5)(x)))
    masks: dict[int, list[np.ndarray]] = {1: [], 4: []}
    for parts, seen in masks.items():

        def loss(x, y, training=False, seen=seen):
            seen.append(network.layers[1](x, training=training).numpy())
            return tf.reduce_sum(network(x, training=training), axis=-1)

        gradients.minimize(
            loss,
            tf.ones([8, 50]),
            None,
            network=network,
            optimizer=sgd(network),
            options=plain.options(accumulate_steps=parts),
            seed=1,
        )
    assert np.array_equal(np.concatenate(masks[4]), masks[1][0])


def test_each_gradient_is_reported_on_request_before_it_is_clipped():
    _, kernel, bias = by_hand()
    network = linear()
    reported = step(network, sgd(network), report_gradients=True, clip_norm=0.01)
    assert reported["gradient/dense/kernel"].numpy() == pytest.approx(kernel)
    assert reported["gradient/dense/bias"].numpy() == pytest.approx(bias)


def embedded():
    words = keras.Input([3], dtype="int64")
    vectors = keras.layers.Embedding(5, 2, name="embedding")(words)
    network = keras.Model(words, keras.layers.Flatten()(vectors))
    network.get_layer("embedding").set_weights([np.arange(10.0).reshape(5, 2)])
    return network


def test_rows_of_an_embedding_that_come_twice_add_up_before_they_are_clipped():
    network = embedded()
    x = tf.constant([[1, 1, 4]])  # the gradient of row 1 is twice that of row 4
    reported = gradients.minimize(
        lambda x, y, training=False: tf.reduce_sum(network(x), axis=-1),
        x,
        None,
        network=network,
        optimizer=sgd(network),
        options=plain.options(clip_norm=1.0, report_gradients=True),
        seed=0,
    )
    expected = np.zeros([5, 2])
    expected[1], expected[4] = 2, 1
    assert reported["gradient/embedding/embeddings"].numpy() == pytest.approx(expected)
    norm = np.sqrt(4 + 4 + 1 + 1)
    assert float(reported["gradient_norm"]) == pytest.approx(norm)
    after = network.get_layer("embedding").get_weights()[0]
    assert after == pytest.approx(np.arange(10.0).reshape(5, 2) - 0.1 * expected / norm)


def test_a_variable_that_the_loss_does_not_depend_on_is_named_and_stays(caplog):
    x = keras.Input([2])
    used, unused = keras.layers.Dense(1, name="used")(x), keras.layers.Dense(1, name="unused")(x)
    network = keras.Model(x, [used, unused])
    before = network.get_layer("unused").get_weights()
    gradients.minimize(
        lambda x, y, training=False: tf.reduce_sum(network(x)[0], axis=-1),
        tf.constant(X),
        None,
        network=network,
        optimizer=sgd(network, weight_decay=0.1),
        options=plain.options(),
        seed=0,
    )
    [warned] = [record.getMessage() for record in caplog.records]
    assert "unused/kernel, unused/bias" in warned
    assert "used/kernel," not in warned.replace("unused/kernel", "")
    for one, other in zip(before, network.get_layer("unused").get_weights(), strict=True):
        assert one.tobytes() == other.tobytes()


def test_layers_draw_by_the_step_taken():
    x = keras.Input([50])
    network = keras.Model(x, keras.layers.Dense(1, name="dense")(random.Dropout(0.5)(x)))
    seen = []

    def loss(x, y, training=False):
        seen.append(network.layers[1](x, training=training).numpy() != 0)
        return tf.reduce_sum(network(x, training=training), axis=-1)

    optimizer = sgd(network)
    for _ in range(2):
        gradients.minimize(
            loss,
            tf.ones([4, 50]),
            None,
            network=network,
            optimizer=optimizer,
            options=plain.options(),
            seed=1,
        )
    assert 0.3 < np.mean(seen[0]) < 0.7
    assert not np.array_equal(seen[0], seen[1])


def reductions(function):
    """Counts the operations that reduce something over replicas."""
    operations = function.graph.get_operations()
    return sum(operation.type.startswith("CollectiveReduce") for operation in operations)


def normalized():
    x = keras.Input([2])
    h = keras.layers.Dense(3, name="first")(x)
    h = keras.layers.BatchNormalization(synchronized=True)(h)
    return keras.Model(x, keras.layers.Dense(1, name="dense")(h))


class TwoReplicas:
    """A network on two devices, each with half of a batch."""

    def __init__(self, network, **options):
        self.strategy = placement.strategy(PlacementOptions(devices="cpu:2"))
        with self.strategy.scope():
            self.network = network()
            optimizer = sgd(self.network)
        self.step = self.on_each(lambda x, y: step_with(x, y, self.network, optimizer, **options))
        self.forward = self.on_each(lambda x, y: self.network(x, training=True))

    def on_each(self, function):
        return tf.function(lambda *parts: self.strategy.run(function, args=parts))

    def parts(self, *whole):
        return [
            self.strategy.experimental_distribute_values_from_function(
                lambda c, a=a: tf.constant(a[2 * c.replica_id_in_sync_group :][:2])
            )
            for a in whole
        ]

    def take_a_step(self, y=Y):
        """Returns what each replica reports."""
        reported = self.step(*self.parts(X, y))
        return {
            name: [float(part) for part in self.strategy.experimental_local_results(value)]
            for name, value in reported.items()
        }

    def reductions(self):
        """Counts those of a step, and of its forward pass."""
        parts = self.parts(X, Y)
        return tuple(
            reductions(function.get_concrete_function(*parts))
            for function in (self.step, self.forward)
        )


def regularized():
    return linear(keras.regularizers.L2(0.3))


def test_two_replicas_take_the_step_of_one():
    network, two = regularized(), TwoReplicas(regularized, clip_norm=0.5)
    reported, of_two = step(network, sgd(network), clip_norm=0.5), two.take_a_step()
    for name, value in reported.items():
        assert of_two[name] == pytest.approx([float(value)] * 2, abs=1e-6)
    kernel, of_two = (n.get_layer("dense").get_weights()[0] for n in (network, two.network))
    assert of_two == pytest.approx(kernel, abs=1e-6)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_value_that_is_not_finite_on_one_replica_is_seen_by_all(value):
    on_the_second = Y.copy()
    on_the_second[3] = float(value)
    reported = TwoReplicas(regularized, clip_norm=0.5).take_a_step(on_the_second)
    for name in ("loss", "gradient_norm"):
        assert np.isfinite(reported[name]).tolist() == [False] * 2


def test_a_step_reduces_once_beside_what_batch_normalisation_reduces():
    # Operations on both devices. The normalisation reduces sums, sums of squares and counts forwards,
    # and the gradients of the first two backwards.
    assert TwoReplicas(linear).reductions() == (2 * 1, 0)
    assert TwoReplicas(normalized).reductions() == (2 * (1 + 3 + 2), 2 * 3)
