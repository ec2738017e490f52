import numpy as np
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.examples import Examples
from {{ cookiecutter.__package_name }}.engine.report import mistakes


class Classifier:
    """Predicts what is in `x`, which is a row of probabilities."""

    def inference(self, x):
        return x

    def loss(self, x, y=None):
        return -tf.math.log(tf.gather(x, y, axis=1, batch_dims=1))


class Estimator:
    """Predicts the number in `x`."""

    def inference(self, x):
        return x

    def loss(self, x, y=None):
        return (x - y) ** 2


def split(**columns):
    tensors = {name: tf.constant(column) for name, column in columns.items()}
    examples = len(columns["x"])

    def fetch(numbers):
        return {name: tf.gather(column, numbers) for name, column in tensors.items()}

    return Examples(examples, fetch, example_bytes=8, in_memory=True)


def test_the_worst_mistakes_of_a_classifier_are_wrong_and_in_order():
    shares = np.array([0.9, 0.2, 0.4, 0.05, 0.6], np.float32)  # of the true class, the first
    data = split(x=np.stack([shares, 1 - shares], axis=1), y=np.zeros(5, np.int64))
    worst = mistakes.worst(Classifier(), data, batch_size=2)
    assert worst.examples["x"][:, 0].tolist() == shares[[3, 1, 2]].tolist()
    assert np.allclose(worst.losses, -np.log(shares[[3, 1, 2]]))
    assert worst.titles(["cat", "owl"])[0] == "cat, not owl (3.00)"
    assert len(mistakes.worst(Classifier(), data, batch_size=4, count=1).losses) == 1


def test_a_classifier_may_make_no_mistakes():
    data = split(x=np.array([[0.9, 0.1]], np.float32), y=np.zeros(1, np.int64))
    worst = mistakes.worst(Classifier(), data, batch_size=2)
    assert worst.examples == {}
    assert worst.titles(["cat", "owl"]) == []


def test_the_worst_estimates_are_those_furthest_off():
    data = split(x=np.array([1, 2, 3], np.float32), y=np.array([1, 5, 2], np.float32))
    worst = mistakes.worst(Estimator(), data, batch_size=3, count=2)
    assert worst.titles([]) == ["5, not 2 (9)", "2, not 3 (1)"]
