import logging
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import accuracy_score, roc_auc_score, root_mean_squared_error

from {{ cookiecutter.__package_name }}.engine import batches, metrics
from {{ cookiecutter.__package_name }}.engine.distribute import placement
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.examples import Examples
from {{ cookiecutter.__package_name }}.engine.options import PlacementOptions
from {{ cookiecutter.__package_name }}.engine.run.evaluation import make_evaluate

ONE_DEVICE = tf.distribute.get_strategy()
EXAMPLES = 45  # in batches of 12: the last has 9, and of two devices the second only 3 that count
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=[EXAMPLES, 2]).astype(np.float32)
Y = (X[:, 0] + GENERATOR.normal(size=EXAMPLES) > 0).astype(np.int64)
PRICE = GENERATOR.normal(size=EXAMPLES).astype(np.float32)
FEATURES = {"x": X, "y": Y, "price": PRICE}


def split(batch_size=12, strategy=ONE_DEVICE, **features):
    columns = {name: tf.constant(array) for name, array in features.items()}

    def fetch(indices):
        return {name: tf.gather(column, indices) for name, column in columns.items()}

    examples = Examples(EXAMPLES, fetch, example_bytes=8, in_memory=True)
    return batches.evaluation(examples, strategy, batch_size=batch_size)


class Judged:
    """Predicts a class and a price, which is a feature beside `x` and `y`, by a weight."""

    metrics = (
        metrics.mean_loss(),
        metrics.classification(),
        metrics.ranking(),
        metrics.mean("off", lambda outputs: tf.abs(outputs["price"] - outputs["inference"])),
    )

    def __init__(self):
        self.weight = tf.Variable(0.5)
        self.traced = 0

    def outputs(self, x, y, price):
        self.traced += 1
        losses = (price - self.weight * x[:, 1]) ** 2
        return {"loss": losses, "y": y, "logits": x, "price": price, "inference": x[:, 1]}


def evaluated(model, strategy=ONE_DEVICE, **features):
    return make_evaluate(model, strategy)(split(strategy=strategy, **features))


@pytest.fixture(scope="module")
def of_one():
    return evaluated(Judged(), **FEATURES)


def test_metrics_of_a_split_are_those_of_scikit_learn_whatever_the_batches(of_one):
    assert of_one["examples"] == EXAMPLES
    assert of_one["accuracy"] == pytest.approx(accuracy_score(Y, X.argmax(axis=1)))
    assert of_one["roc_auc"] == pytest.approx(roc_auc_score(Y, X[:, 1] - X[:, 0]), abs=1e-3)
    assert of_one["off"] == pytest.approx(np.abs(PRICE - X[:, 1]).mean())
    rmse = root_mean_squared_error(PRICE, 0.5 * X[:, 1])
    assert of_one["loss"] == pytest.approx(rmse**2)


def test_two_devices_and_a_padded_batch_give_the_metrics_of_one(of_one):
    strategy = placement.strategy(PlacementOptions(devices="cpu:2"))
    with strategy.scope():
        model = Judged()
    of_two = evaluated(model, strategy, **FEATURES)
    assert of_two == {
        name: pytest.approx(value, abs=1e-9) if isinstance(value, float) else value
        for name, value in of_one.items()
    }


def test_a_model_is_traced_once_and_evaluations_in_one_process_are_not_warned_of(caplog):
    for _ in range(8):  # TensorFlow warns when it traced a function in 5 of its last 10 calls
        model: Any = Judged()
        evaluate = make_evaluate(model, ONE_DEVICE)
        with caplog.at_level(logging.WARNING, "tensorflow"):
            evaluate(split(batch_size=EXAMPLES, **FEATURES))
    evaluate(split(batch_size=EXAMPLES, **FEATURES))
    assert model.traced == 1
    assert evaluate(split(batch_size=7, **FEATURES))["examples"] == EXAMPLES
    assert "retracing" not in caplog.text


class Autoencoder:
    """Has no target."""

    metrics: Any = (metrics.mean_loss(), metrics.regression())

    def outputs(self, x):
        return {"loss": tf.reduce_sum(x**2, axis=1), "y": x, "inference": tf.zeros_like(x)}


def test_a_model_without_a_target_is_evaluated():
    found = evaluated(Autoencoder(), x=X)
    assert found["loss"] == pytest.approx((X**2).sum(axis=1).mean())
    assert found["error"] == pytest.approx(np.sqrt((X**2).mean()))


class OfLastRelease:
    """Says how it is judged by `totals` and `figures`."""

    def totals(self, x, y, weight):
        return metrics.classification_totals(y, x, x[:, 0], weight)

    def figures(self, totals):
        return metrics.classification_figures(totals)


def test_a_model_of_the_last_release_is_evaluated():
    found = evaluated(OfLastRelease(), x=X, y=Y)
    assert found["error"] == pytest.approx(1 - accuracy_score(Y, X.argmax(axis=1)))
    assert found["loss"] == pytest.approx(X[:, 0].mean(dtype=np.float64))


class JudgedTwice(Autoencoder):
    metrics = (*Autoencoder.metrics, metrics.regression())


def test_two_metrics_of_one_name_are_refused():
    with pytest.raises(UserError, match="two of the model's metrics report error, mae, r2, rmse"):
        evaluated(JudgedTwice(), x=X)
