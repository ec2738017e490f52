import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import (
    confusion_matrix,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)

from {{ cookiecutter.__package_name }}.engine import metrics


def added_up(totals, y, values, losses):
    """Sums of a split of 50, taken in three batches with padding of weight 0."""
    sums: dict = {}
    for part, padded in zip(np.array_split(np.arange(len(y)), 3), [3, 0, 2], strict=True):
        weight = np.r_[np.ones(len(part)), np.zeros(padded)].astype(np.float32)
        part = np.r_[part, [part[-1]] * padded].astype(int)
        rows = (tf.constant(array[part]) for array in (y, values, losses))
        for name, value in totals(*rows, tf.constant(weight)).items():
            sums[name] = sums.get(name, 0) + value.numpy()
    return sums


@pytest.fixture(scope="module")
def generator():
    return np.random.default_rng(0)


def test_figures_of_classes_are_those_of_scikit_learn(generator):
    y = generator.integers(0, 3, 50)  # of four classes: the last never occurs
    scores = generator.normal(size=[50, 4]).astype(np.float32)
    scores[:, 2] = -9  # nor is the third ever predicted
    losses = generator.random(50).astype(np.float32)
    sums = added_up(metrics.classification_totals, y, scores, losses)
    figures = metrics.classification_figures(sums)
    predicted = scores.argmax(axis=1)
    expected = precision_recall_fscore_support(y, predicted, labels=range(4), zero_division=0)
    for name, values in zip(("precision", "recall", "f1"), expected, strict=False):
        assert figures[name] == pytest.approx(values, abs=1e-12), name
    assert figures["confusion"] == confusion_matrix(y, predicted, labels=range(4)).tolist()
    assert figures["accuracy"] == pytest.approx(np.mean(predicted == y), abs=1e-12)
    assert figures["error"] == pytest.approx(np.mean(predicted != y), abs=1e-12)
    assert figures["loss"] == pytest.approx(losses.mean(dtype=np.float64), abs=1e-9)
    assert figures["examples"] == 50


def test_figures_of_values_are_those_of_scikit_learn(generator):
    y = (1e4 + 3 * generator.normal(size=50)).astype(np.float32)  # far from zero
    predicted = (y + generator.normal(size=50)).astype(np.float32)
    losses = ((predicted - y) ** 2).astype(np.float32)
    sums = added_up(metrics.regression_totals, y, predicted, losses)
    figures = metrics.regression_figures(sums)
    exact, guess = y.astype(np.float64), predicted.astype(np.float64)
    assert figures["rmse"] == pytest.approx(root_mean_squared_error(exact, guess), abs=1e-9)
    assert figures["error"] == figures["rmse"]
    assert figures["mae"] == pytest.approx(mean_absolute_error(exact, guess), abs=1e-9)
    assert figures["r2"] == pytest.approx(r2_score(exact, guess), abs=1e-6)
    assert figures["loss"] == pytest.approx(losses.mean(dtype=np.float64), abs=1e-6)
    assert figures["examples"] == 50


def test_targets_that_are_all_equal_leave_nothing_to_explain():
    y = np.full(50, 2, np.float32)
    for predicted in (y, y + 1):
        sums = added_up(metrics.regression_totals, y, predicted, y)
        assert metrics.regression_figures(sums)["r2"] == r2_score(y, predicted)
