import numpy as np
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.examples import Examples
from {{ cookiecutter.__package_name }}.report import mistakes


class Classifier:
    """Predicts what is in `x`, which is a row of probabilities."""

    def inference(self, x):
        return x

    def loss(self, x, y):
        return -tf.math.log(tf.gather(x, y, axis=1, batch_dims=1))


class Estimator:
    """Predicts the numbers in `x`; `bonus`, one more feature, lowers the loss."""

    def inference(self, x):
        return x

    def loss(self, x, y, bonus=0.0):
        squared = tf.reshape((x - y) ** 2, [tf.shape(x)[0], -1])
        return tf.reduce_sum(squared, axis=1) - bonus


class Autoencoder:
    """Has no target; what it makes of `x` is zeros."""

    def inference(self, x):
        return {"image": tf.zeros_like(x)}

    def loss(self, x):
        return tf.reduce_sum(x**2, axis=1)


def split(**columns):
    tensors = {name: tf.constant(column) for name, column in columns.items()}

    def fetch(indices):
        return {name: tf.gather(column, indices) for name, column in tensors.items()}

    return Examples(len(columns["x"]), fetch, example_bytes=8, in_memory=True)


def test_of_a_classifier_the_highest_loss_of_wrong_predictions_comes_first():
    shares = np.array([0.9, 0.2, 0.4, 0.05, 0.6], np.float32)  # of the true class, the first
    data = split(x=np.stack([shares, 1 - shares], axis=1), y=np.zeros(5, np.int64))
    found = mistakes.highest_loss(Classifier(), data, batch_size=2, classes=2)
    assert found.examples["x"][:, 0].tolist() == shares[[3, 1, 2]].tolist()
    assert np.allclose(found.losses, -np.log(shares[[3, 1, 2]]))
    assert found.titles(["cat", "owl"])[0] == "cat, not owl (3.00)"
    one = mistakes.highest_loss(Classifier(), data, batch_size=4, classes=2, count=1)
    assert one.titles(["cat", "owl"]) == ["cat, not owl (3.00)"]


def test_a_classifier_may_have_nothing_wrong():
    data = split(x=np.array([[0.9, 0.1]], np.float32), y=np.zeros(1, np.int64))
    found = mistakes.highest_loss(Classifier(), data, batch_size=2, classes=2)
    assert found.examples == {}
    assert found.titles(["cat", "owl"]) == []


def test_estimates_furthest_off_come_first():
    data = split(x=np.array([1, 2, 3], np.float32), y=np.array([1, 5, 2], np.float32))
    found = mistakes.highest_loss(Estimator(), data, batch_size=3, count=2)
    assert found.titles([]) == ["5, not 2 (9)", "2, not 3 (1)"]


def test_vectors_are_ordered_by_their_loss_to_which_every_feature_comes():
    x, bonus = np.eye(3, dtype=np.float32), np.array([2.0, 0.5, 1.0], np.float32)
    data = split(x=x, y=np.zeros([3, 3], np.float32), bonus=bonus)
    found = mistakes.highest_loss(Estimator(), data, batch_size=2)
    assert found.examples["x"].tolist() == x[[1, 2, 0]].tolist()
    assert found.titles([]) == ["loss 0.5", "loss 0", "loss -1"]


def test_without_a_target_the_loss_alone_decides():
    x = np.array([[1, 0], [3, 4], [0, 2]], np.float32)
    found = mistakes.highest_loss(Autoencoder(), split(x=x), batch_size=2, classes=2)
    assert found.losses.tolist() == [25, 4, 1]
    assert found.titles(["cat", "owl"]) == ["loss 25", "loss 4", "loss 1"]
    assert found.predicted["image"].tolist() == np.zeros([3, 2]).tolist()
