import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import confusion_matrix, log_loss, root_mean_squared_error

from {{ cookiecutter.__package_name }}.columns import Column
from {{ cookiecutter.__package_name }}.engine.options import OptimizerOptions
from {{ cookiecutter.__package_name }}.model import Model
from {{ cookiecutter.__package_name }}.vocab import vocab

COLUMNS = (
    Column("Age", "age", "number", mean=40.0, stddev=10.0, has_missing=True),
    Column("Town", "town", "category", vocabulary=("Ulm", "Bonn")),
)
MEAN, STDDEV = 300.0, 50.0


def some(rows):
    """Returns the first rows of an endless table, and a class and a number that follow from each."""
    generator = np.random.default_rng(0)
    age = generator.normal(40, 10, 1000)[:rows].astype(np.float32)
    town = generator.integers(0, 3, 1000)[:rows]
    number = (300 + 3 * (age - 40) + 40 * (town - 1)).astype(np.float32)
    missing = np.where(np.arange(rows) % 7 == 3, np.float32(np.nan), age)
    names = np.array(["Ulm", "Bonn", "Aachen"], object)[town]
    return {"age": tf.constant(missing), "town": tf.constant(names)}, town, number


@pytest.fixture(scope="module")
def classifier():
    return Model(columns=COLUMNS, classes=3, seed=1)


@pytest.fixture(scope="module")
def estimator():
    return Model(columns=COLUMNS, mean=MEAN, stddev=STDDEV, seed=1)


def test_a_classifier_gives_a_probability_for_each_class(classifier):
    probabilities = classifier.inference(some(50)[0]).numpy()
    assert probabilities.shape == (50, 3)
    assert probabilities.dtype == np.float32
    assert probabilities.sum(axis=1) == pytest.approx(1, abs=1e-6)


def test_an_estimator_gives_a_number_in_the_unit_of_the_target(estimator):
    predicted = estimator.inference(some(50)[0]).numpy()
    assert predicted.shape == (50,)
    assert predicted.dtype == np.float32
    logits = estimator.network(estimator.preprocessing(some(50)[0])).numpy()[:, 0]
    assert predicted == pytest.approx(MEAN + STDDEV * logits, rel=1e-5)


def test_the_loss_of_a_classifier_is_the_cross_entropy_of_each_example(classifier):
    x, y, _ = some(50)
    losses = classifier.loss(x, tf.constant(y)).numpy()
    probabilities = classifier.inference(x).numpy().astype(np.float64)
    assert losses == pytest.approx(-np.log(probabilities[np.arange(50), y]), abs=1e-5)


def test_the_loss_of_an_estimator_does_not_depend_on_the_unit(estimator):
    x, _, y = some(50)
    losses = estimator.loss(x, tf.constant(y)).numpy()
    expected = ((estimator.inference(x).numpy() - y) / STDDEV) ** 2
    assert losses == pytest.approx(expected, rel=1e-3, abs=1e-5)


def judged(model, x, y):
    outputs = model.outputs(x, tf.constant(y))
    results: dict = {}
    for metric in model.metrics:
        sums = metric.sums(outputs, tf.ones(len(y)))
        results |= metric.results({name: total.numpy() for name, total in sums.items()})
    return results


def test_a_classifier_is_judged_like_by_scikit_learn(classifier):
    x, y, _ = some(50)
    found = judged(classifier, x, y)
    probabilities = classifier.inference(x).numpy().astype(np.float64)
    predicted = probabilities.argmax(axis=1)
    assert found[vocab.examples] == 50
    assert found[vocab.error] == pytest.approx(np.mean(predicted != y))
    assert found[vocab.confusion] == confusion_matrix(y, predicted, labels=range(3)).tolist()
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    assert found[vocab.loss] == pytest.approx(log_loss(y, probabilities, labels=range(3)))


def test_an_estimator_is_judged_like_by_scikit_learn(estimator):
    x, _, y = some(50)
    found = judged(estimator, x, y)
    predicted = estimator.inference(x).numpy().astype(np.float64)
    assert found[vocab.examples] == 50
    assert found[vocab.error] == pytest.approx(root_mean_squared_error(y, predicted), rel=1e-6)


def test_examples_of_a_class_count_in_training_what_its_weight_says(classifier):
    x, y, _ = some(50)
    weighted = Model(columns=COLUMNS, classes=3, class_weights=(0.5, 1.0, 3.0), seed=1)
    plain = classifier.loss(x, tf.constant(y), training=True).numpy()
    losses = weighted.loss(x, tf.constant(y), training=True).numpy()
    assert losses == pytest.approx(plain * np.array([0.5, 1.0, 3.0])[y], rel=1e-5)
    assert weighted.loss(x, tf.constant(y)).numpy() == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize("classes", [3, 0])
def test_steps_lower_the_loss_and_count(classes):
    x, label, number = some(200)
    y = tf.constant(label if classes else number)
    options = OptimizerOptions(learning_rate=0.05, schedule="constant", warmup_steps=0)
    model = Model(columns=COLUMNS, classes=classes, mean=MEAN, stddev=STDDEV, optimizer=options)
    optimize = tf.function(model.optimize)
    losses = [float(optimize(x, y)[vocab.loss]) for _ in range(60)]
    assert np.mean(losses[-5:]) < 0.3 * losses[0]
    assert int(model.optimizer.iterations) == 60


def test_operations_are_found_by_their_names_in_a_graph(classifier):
    spec = {
        "age": tf.TensorSpec([None], tf.float32, name="age"),
        "town": tf.TensorSpec([None], tf.string, name="town"),
    }
    classes = tf.TensorSpec([None], tf.int64, name=vocab.y)
    inference = tf.function(classifier.inference).get_concrete_function(spec).graph
    loss = tf.function(classifier.loss).get_concrete_function(spec, classes).graph
    assert inference.get_tensor_by_name("town:0").dtype == tf.string
    assert inference.get_tensor_by_name(f"{vocab.inference}:0").shape.as_list() == [None, 3]
    assert loss.get_tensor_by_name(f"{vocab.loss}:0").shape.as_list() == [None]


def test_the_seed_decides_the_initial_weights():
    first, same, other = (
        Model(columns=COLUMNS, seed=seed).network.get_weights() for seed in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_only_the_network_has_something_to_save():
    model = Model(columns=COLUMNS, dropout_rate=0.5)
    assert [variable.path for variable in model.network.variables] == [
        *("dense_1/kernel", "dense_1/bias", "dense_2/kernel", "dense_2/bias"),
        *("logits/kernel", "logits/bias"),
    ]
    assert model.preprocessing.variables == ()
