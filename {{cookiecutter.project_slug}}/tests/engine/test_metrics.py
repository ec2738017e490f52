import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    mean_absolute_error,
    mean_squared_error,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
)

from {{ cookiecutter.__package_name }}.engine import metrics


def of_split(metric, **outputs):
    """Results over a split, taken in three batches with padding of weight 0."""
    examples = len(outputs["y"])
    sums: dict = {}
    for part, padded in zip(np.array_split(np.arange(examples), 3), [3, 0, 2], strict=True):
        weight = np.r_[np.ones(len(part)), np.zeros(padded)].astype(np.float32)
        rows = np.r_[part, [part[-1]] * padded].astype(int)
        batch = {name: tf.constant(array[rows]) for name, array in outputs.items()}
        for name, value in metric.sums(batch, tf.constant(weight)).items():
            assert value.dtype == tf.float64
            sums[name] = sums.get(name, 0) + value.numpy()
    return metric.results(sums)


@pytest.fixture(scope="module")
def generator():
    return np.random.default_rng(0)


def test_metrics_of_classes_are_those_of_scikit_learn(generator):
    y = generator.integers(0, 3, 50)  # of four classes: the last never occurs
    logits = generator.normal(size=[50, 4]).astype(np.float32)
    logits[:, 2] = -9  # nor is the third ever predicted
    found = of_split(metrics.classification(), y=y, logits=logits)
    predicted = logits.argmax(axis=1)
    expected = precision_recall_fscore_support(y, predicted, labels=range(4), zero_division=0)
    for name, values in zip(("precision", "recall", "f1"), expected, strict=False):
        assert found[name] == pytest.approx(values, abs=1e-12), name
    assert found["confusion"] == confusion_matrix(y, predicted, labels=range(4)).tolist()
    assert found["accuracy"] == pytest.approx(np.mean(predicted == y), abs=1e-12)
    assert found["error"] == pytest.approx(np.mean(predicted != y), abs=1e-12)


@pytest.mark.parametrize("shape", [(), (6,), (4, 3)])
def test_metrics_of_numbers_and_vectors_are_those_of_scikit_learn(generator, shape):
    # Far from zero, and each element about a mean of its own.
    y = 1e4 * generator.normal(size=shape) + 3 * generator.normal(size=[50, *shape])
    y = y.astype(np.float32)
    predicted = (y + generator.normal(size=[50, *shape])).astype(np.float32)
    found = of_split(metrics.regression(), y=y, inference=predicted)
    exact, guess = (a.astype(np.float64).reshape(50, -1) for a in (y, predicted))
    assert found["rmse"] == pytest.approx(mean_squared_error(exact, guess) ** 0.5, abs=1e-9)
    assert found["error"] == found["rmse"]
    assert found["mae"] == pytest.approx(mean_absolute_error(exact, guess), abs=1e-9)
    expected = r2_score(exact, guess, multioutput="variance_weighted")
    assert found["r2"] == pytest.approx(expected, abs=1e-6)


def test_targets_that_are_all_equal_leave_nothing_to_explain():
    y = np.full(50, 2, np.float32)
    for predicted in (y, y + 1):
        found = of_split(metrics.regression(), y=y, inference=predicted)
        assert found["r2"] == r2_score(y, predicted)


def test_targets_of_another_shape_than_predictions_are_refused_not_broadcast():
    y = np.zeros(50, np.float32)
    with pytest.raises(ValueError, match="incompatible"):
        of_split(metrics.regression(), y=y, inference=y[:, np.newaxis])


@pytest.mark.parametrize("width", [None, 1, 2])
@pytest.mark.parametrize(
    ("centre", "spread", "positives"),
    [(0, 1, 0.5), (-7, 1, 0.01), (-7, 0.2, 0.002), (0, 0.02, 0.1), (30, 20, 0.3)],
)
def test_areas_under_curves_are_those_of_scikit_learn(generator, centre, spread, positives, width):
    y = (generator.random(100_000) < positives).astype(np.int64)
    scores = (centre + spread * (generator.normal(size=len(y)) + y)).astype(np.float32)
    logits = scores if width is None else scores[:, np.newaxis]
    if width == 2:
        first = generator.normal(size=len(y)).astype(np.float32)
        logits = np.stack([first, first + scores], axis=1)
    found = of_split(metrics.ranking(), y=y, logits=logits)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, scores), abs=1e-3)
    assert found["pr_auc"] == pytest.approx(average_precision_score(y, scores), abs=1e-3)


def test_scores_that_are_all_equal_and_logits_beyond_all_bins_have_their_areas(generator):
    y = (generator.random(1000) < 0.1).astype(np.int64)
    for scores in (np.zeros(len(y)), np.where(y, np.inf, -1e30), np.where(y, -1e30, 1e30)):
        found = of_split(metrics.ranking(), y=y, logits=scores.astype(np.float32))
        finite = np.nan_to_num(scores)
        assert found["roc_auc"] == pytest.approx(roc_auc_score(y, finite))
        assert found["pr_auc"] == pytest.approx(average_precision_score(y, finite))


def test_one_class_alone_has_no_areas():
    y = np.zeros(50, np.int64)
    found = of_split(metrics.ranking(), y=y, logits=np.arange(50, dtype=np.float32))
    assert np.isnan([found["roc_auc"], found["pr_auc"]]).all()


def test_a_metric_of_ones_own_is_the_mean_over_examples(generator):
    y, logits = generator.integers(0, 4, 50), generator.normal(size=[50, 4]).astype(np.float32)
    losses = generator.random(50).astype(np.float32)
    found = of_split(metrics.mean_loss(), y=y, loss=losses)
    assert found == {"loss": pytest.approx(losses.mean(dtype=np.float64)), "examples": 50}
    top_2 = metrics.mean("top_2", lambda o: tf.math.in_top_k(o["y"], o["logits"], 2))
    hits = np.argsort(-logits, axis=1)[:, :2] == y[:, np.newaxis]
    assert of_split(top_2, y=y, logits=logits) == {"top_2": pytest.approx(hits.any(axis=1).mean())}


def test_functions_of_the_last_release_give_the_same_metrics(generator):
    y, logits = generator.integers(0, 4, 50), generator.normal(size=[50, 4]).astype(np.float32)
    values, losses = logits[:, 0], generator.random(50).astype(np.float32)
    weight = tf.ones(50)
    numbers = y.astype(np.float32)
    loss = of_split(metrics.mean_loss(), y=y, loss=losses)
    totals = metrics.classification_totals(y, tf.constant(logits), tf.constant(losses), weight)
    found = metrics.classification_figures({name: total.numpy() for name, total in totals.items()})
    expected = loss | of_split(metrics.classification(), y=y, logits=logits)
    assert found == expected | {"loss": pytest.approx(expected["loss"])}
    totals = metrics.regression_totals(
        tf.constant(numbers), tf.constant(values), tf.constant(losses), weight
    )
    found = metrics.regression_figures({name: total.numpy() for name, total in totals.items()})
    expected = loss | of_split(metrics.regression(), y=numbers, inference=values)
    assert found == pytest.approx(expected)
