import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import confusion_matrix, log_loss

from {{ cookiecutter.__package_name }}.engine.options import OptimizerOptions
from {{ cookiecutter.__package_name }}.model import Model
from {{ cookiecutter.__package_name }}.vocab import vocab


@pytest.fixture(scope="module")
def model():
    return Model(image_shape=(9, 7, 3), classes=4, mean=(90.0,) * 3, stddev=(60.0,) * 3, seed=1)


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).integers(0, 256, [50, 9, 7, 3]).astype(np.uint8)


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(1).integers(0, 4, 50)


def test_a_model_is_made_from_literals_and_has_defaults():
    assert Model().inference(tf.zeros([2, 8, 8, 1])).shape == (2, 10)


def test_inference_gives_a_probability_for_each_class(model, x):
    probabilities = model.inference(tf.constant(x)).numpy()
    assert probabilities.shape == (50, 4)
    assert probabilities.dtype == np.float32
    assert probabilities.min() >= 0
    assert probabilities.sum(axis=1) == pytest.approx(1, abs=1e-6)
    assert len({row.tobytes() for row in probabilities}) == 50


def test_inference_takes_pixels_of_any_number_type(model, x):
    assert np.array_equal(model.inference(tf.constant(x)), model.inference(tf.cast(x, tf.float32)))


def test_pixels_are_standardized_with_mean_and_deviation(x):
    standardize = Model(mean=(90.0,), stddev=(60.0,)).network.get_layer("standardize")
    pixels = x[..., :1].astype(np.float32)
    assert standardize(pixels).numpy() == pytest.approx((pixels - 90) / 60, abs=1e-6)


def test_a_channel_that_never_varies_is_no_division_by_zero(x):
    model = Model(image_shape=(9, 7, 3), mean=(0.0, 5.0, 0.0), stddev=(60.0, 0.0, 60.0))
    constant = x.copy()
    constant[..., 1] = 5
    assert np.all(np.isfinite(model.inference(tf.constant(constant))))


def test_the_loss_is_the_cross_entropy_of_each_example(model, x, y):
    losses = model.loss(tf.constant(x), tf.constant(y)).numpy()
    probabilities = model.inference(tf.constant(x)).numpy().astype(np.float64)
    assert losses.shape == (50,)
    assert losses == pytest.approx(-np.log(probabilities[np.arange(50), y]), abs=1e-5)
    expected = log_loss(y, probabilities / probabilities.sum(1, keepdims=True), labels=range(4))
    assert losses.mean() == pytest.approx(expected, abs=1e-5)


def test_classes_are_weighted_in_training_alone(x, y):
    weights = [0.5, 1.0, 2.0, 4.0]
    plain, weighted = (
        Model(image_shape=(9, 7, 3), classes=4, class_weights=w) for w in (None, weights)
    )
    batch = tf.constant(x), tf.constant(y)
    assert weighted.loss(*batch).numpy() == pytest.approx(plain.loss(*batch).numpy())
    in_training = plain.loss(*batch, training=True).numpy() * np.array(weights)[y]
    assert weighted.loss(*batch, training=True).numpy() == pytest.approx(in_training, rel=1e-5)


def test_an_input_of_another_shape_is_an_error_that_gives_both(model):
    with pytest.raises(ValueError, match=r"\(5, 8, 8, 1\).*\(9, 7, 3\)"):
        model.inference(tf.zeros([5, 8, 8, 1]))


def test_operations_are_found_by_their_names_in_a_graph():
    model = Model()
    pixels = tf.TensorSpec([None, 8, 8, 1], tf.uint8, name=vocab.x)
    classes = tf.TensorSpec([None], tf.int64, name=vocab.y)
    inference = tf.function(model.inference).get_concrete_function(pixels).graph
    loss = tf.function(model.loss).get_concrete_function(pixels, classes).graph
    assert inference.get_tensor_by_name(f"{vocab.x}:0").dtype == tf.uint8
    assert inference.get_tensor_by_name(f"{vocab.inference}:0").shape.as_list() == [None, 10]
    assert loss.get_tensor_by_name(f"{vocab.loss}:0").shape.as_list() == [None]


def test_the_seed_decides_the_initial_weights():
    first, same, other = (Model(seed=seed).network.get_weights() for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_layers_have_the_names_that_checkpoints_use():
    paths = [variable.path for variable in Model().network.trainable_variables]
    assert paths[0] == "conv_1/kernel"
    assert paths[-1] == "logits/bias"
    assert not [path for path in paths if path.startswith("conv") and path.endswith("bias")]


def test_steps_lower_the_loss_and_count(x, y):
    options = OptimizerOptions(learning_rate=0.05, schedule="constant", warmup_steps=0)
    model = Model(image_shape=(9, 7, 3), classes=4, optimizer=options, dropout_rate=0.1)
    optimize = tf.function(model.optimize)
    losses = [float(optimize(tf.constant(x), tf.constant(y))[vocab.loss]) for _ in range(40)]
    assert np.mean(losses[-5:]) < 0.5 * losses[0]
    assert int(model.optimizer.iterations) == 40


def test_dropout_and_augmentation_leave_no_state_to_save():
    kinds = {variable.path.split("/")[-1] for variable in Model(dropout_rate=0.5).network.variables}
    assert kinds == {"kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance"}


def test_metrics_are_those_of_scikit_learn(model, x, y):
    outputs = model.outputs(tf.constant(x), tf.constant(y))
    found: dict = {}
    for metric in model.metrics:
        sums = metric.sums(outputs, tf.ones(len(y)))
        found |= metric.results({name: total.numpy() for name, total in sums.items()})
    probabilities = model.inference(tf.constant(x)).numpy()
    predicted = probabilities.argmax(axis=1)
    assert found[vocab.examples] == 50
    assert found[vocab.accuracy] == pytest.approx(np.mean(predicted == y))
    assert found[vocab.error] == pytest.approx(np.mean(predicted != y))
    assert found[vocab.loss] == pytest.approx(
        -np.log(probabilities[np.arange(50), y]).mean(), abs=1e-5
    )
    assert found[vocab.confusion] == confusion_matrix(y, predicted, labels=range(4)).tolist()
