"""Metrics of a split, computed from sums over its examples: they do not depend on batches or devices.

A ``Metric`` adds up what the examples of one batch on one device contribute, and divides once everything is added up: a
mean of means would be wrong for a last batch that is not full. The sums are float64, which is exact for counts.
Definitions are those of scikit-learn, ``sklearn.metrics``.

A metric of your own is a ``Metric``, or a line: ``mean("top_5", lambda o: tf.math.in_top_k(o["y"], o["logits"], 5))``.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ..vocab import vocab

Outputs = Mapping[str, tf.Tensor]
"""What a model's ``outputs`` returns, by name, ``[batch, ...]`` each."""

Sums = dict[str, tf.Tensor]
Results = dict[str, Any]

_BINS = 32_768  # of logits, for what needs the order of all examples
_LARGEST_LOGIT, _LINEAR_UP_TO = 100.0, 0.1  # bins grow with the logit from there on


@dataclasses.dataclass(frozen=True)
class Metric:
    """One or more values of a split, from sums over its examples."""

    sums: Callable[[Outputs, tf.Tensor], Sums]
    """From a batch's outputs and weights, ``[batch] float32``, 0 for padding, to sums by name, of fixed shapes."""

    results: Callable[[Mapping[str, np.ndarray]], Results]
    """From these sums over the whole split to what is reported, by name; a float is also written as a curve."""


def mean(name: str, of: Callable[[Outputs], tf.Tensor]) -> Metric:
    """Returns the metric ``name``: the mean over all examples.

    Args:
        name: under which it is reported.
        of: from the outputs to the value of each example, ``[batch]`` of any number type or bool.
    """

    def sums(outputs: Outputs, weight: tf.Tensor) -> Sums:
        values = of(outputs)
        values.shape.assert_has_rank(1)
        return {vocab.examples: _total(tf.ones_like(weight), weight), name: _total(values, weight)}

    return Metric(sums, lambda sums: {name: float(sums[name] / sums[vocab.examples])})


def mean_loss() -> Metric:
    """Returns ``loss``, the mean of the output ``loss``, ``[batch] float32``, and ``examples``, their number."""
    loss = mean(vocab.loss, lambda outputs: outputs[vocab.loss])

    def results(sums: Mapping[str, np.ndarray]) -> Results:
        return {**loss.results(sums), vocab.examples: int(np.rint(sums[vocab.examples]))}

    return Metric(loss.sums, results)


def classification() -> Metric:
    """Returns ``error`` (1 - accuracy), ``accuracy``, and by class ``precision``, ``recall``, ``f1``, ``confusion``.

    The outputs are ``y``, the true class, ``[batch] int64``, and ``logits``, ``[batch, classes] float32``, of which the
    highest is the predicted class. Precision, recall and F1 are lists in the order of the classes, 0 where they would
    divide by zero; ``confusion`` holds counts ``[true class, predicted class]``.
    """

    def sums(outputs: Outputs, weight: tf.Tensor) -> Sums:
        logits = outputs[vocab.logits]
        predicted = tf.argmax(logits, axis=-1)
        counts = tf.math.confusion_matrix(
            outputs[vocab.y], predicted, logits.shape[-1], weights=weight, dtype=tf.float64
        )
        return {vocab.confusion: counts}

    def results(sums: Mapping[str, np.ndarray]) -> Results:
        counts = sums[vocab.confusion]
        right, true, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
        accuracy = float(right.sum() / counts.sum())
        return {
            vocab.error: 1 - accuracy,
            vocab.accuracy: accuracy,
            vocab.precision: _ratio(right, predicted).tolist(),
            vocab.recall: _ratio(right, true).tolist(),
            vocab.f1: _ratio(2 * right, true + predicted).tolist(),
            vocab.confusion: np.rint(counts).astype(int).tolist(),
        }

    return Metric(sums, results)


def ranking() -> Metric:
    """Returns ``roc_auc`` and ``pr_auc`` (average precision) of two classes; not a number if only one occurs.

    The outputs are ``y``, 1 for a positive example, else 0, ``[batch]``, and ``logits``: ``[batch, 2]``, or ``[batch]``
    or ``[batch, 1]`` for the logit of a positive. Examples are counted in bins of their logits, which are finest around
    0 and still narrow far from it, where the scores of rare positives are; the areas are those of the binned logits.
    """

    def sums(outputs: Outputs, weight: tf.Tensor) -> Sums:
        y, logits = tf.cast(outputs[vocab.y], tf.int32), outputs[vocab.logits]
        if logits.shape.rank == 2:
            logits = logits[:, -1] - logits[:, 0] if logits.shape[-1] == 2 else logits[:, 0]
        logits.shape.assert_is_compatible_with(y.shape)
        bounded = tf.clip_by_value(logits / _LARGEST_LOGIT, -1, 1) * _LARGEST_LOGIT
        squashed = tf.asinh(bounded / _LINEAR_UP_TO) / np.arcsinh(_LARGEST_LOGIT / _LINEAR_UP_TO)
        bins = tf.clip_by_value(tf.cast((squashed + 1) / 2 * _BINS, tf.int32), 0, _BINS - 1)
        counted = tf.cast(weight, tf.float64)
        counts = tf.scatter_nd(tf.stack([y, bins], axis=1), counted, [2, _BINS])
        return {vocab.roc_auc: counts}

    def results(sums: Mapping[str, np.ndarray]) -> Results:
        negatives, positives = sums[vocab.roc_auc][:, ::-1]  # the highest logits first
        false, true = negatives.cumsum(), positives.cumsum()
        if not (false[-1] and true[-1]):
            return {vocab.roc_auc: float("nan"), vocab.pr_auc: float("nan")}
        above = (
            false - negatives / 2
        )  # negatives ranked before a positive; of those in its bin, one half
        return {
            vocab.roc_auc: float(1 - (positives * above).sum() / (true[-1] * false[-1])),
            vocab.pr_auc: float((positives * _ratio(true, true + false)).sum() / true[-1]),
        }

    return Metric(sums, results)


def regression() -> Metric:
    """Returns ``error`` (the RMSE), ``rmse``, ``mae`` and ``r2``, of numbers or of vectors.

    The outputs are ``y``, the true values, and ``inference``, the predicted ones, both ``[batch, ...] float32`` of one
    shape, in the units of the target. Means are over all elements of all examples; ``r2`` is the share of the variance
    explained, with each element about its own mean (scikit-learn's ``variance_weighted``).
    """

    def sums(outputs: Outputs, weight: tf.Tensor) -> Sums:
        y, predicted = (tf.cast(outputs[k], tf.float64) for k in (vocab.y, vocab.inference))
        predicted.shape.assert_is_compatible_with(y.shape)  # else they would be broadcast
        return {
            vocab.examples: _total(tf.ones_like(weight), weight),
            vocab.rmse: _total((predicted - y) ** 2, weight),
            vocab.mae: _total(tf.abs(predicted - y), weight),
            vocab.r2: tf.stack([_total(y, weight), _total(y**2, weight)]),
        }

    def results(sums: Mapping[str, np.ndarray]) -> Results:
        examples, residual = sums[vocab.examples], float(np.sum(sums[vocab.rmse]))
        total, squares = sums[vocab.r2]
        spread = float(np.sum(squares - total**2 / examples))
        rmse = float(np.sqrt(residual / (examples * np.size(total))))
        return {
            vocab.error: rmse,
            vocab.rmse: rmse,
            vocab.mae: float(np.mean(sums[vocab.mae]) / examples),
            # Of targets that are all equal, no share can be explained: scikit-learn's convention.
            vocab.r2: 1 - residual / spread if spread > 0 else float(residual == 0),
        }

    return Metric(sums, results)


def _total(values: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns the weighted sum over the examples of a batch, ``[...] float64``, of values ``[batch, ...]``."""
    weight = tf.reshape(tf.cast(weight, tf.float64), [-1] + [1] * (values.shape.rank - 1))
    return tf.reduce_sum(tf.cast(values, tf.float64) * weight, axis=0)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


# What models of the last release call; it goes with the next one.


def classification_totals(
    y: tf.Tensor, scores: tf.Tensor, losses: tf.Tensor, weight: tf.Tensor
) -> Sums:
    """Returns the sums that ``classification_figures`` takes."""
    outputs = {vocab.y: y, vocab.logits: scores, vocab.loss: losses}
    return mean_loss().sums(outputs, weight) | classification().sums(outputs, weight)


def classification_figures(totals: Mapping[str, np.ndarray]) -> Results:
    """Returns the results of ``mean_loss`` and ``classification``."""
    return mean_loss().results(totals) | classification().results(totals)


def regression_totals(
    y: tf.Tensor, predicted: tf.Tensor, losses: tf.Tensor, weight: tf.Tensor
) -> Sums:
    """Returns the sums that ``regression_figures`` takes."""
    outputs = {vocab.y: y, vocab.inference: predicted, vocab.loss: losses}
    return mean_loss().sums(outputs, weight) | regression().sums(outputs, weight)


def regression_figures(totals: Mapping[str, np.ndarray]) -> Results:
    """Returns the results of ``mean_loss`` and ``regression``."""
    return mean_loss().results(totals) | regression().results(totals)
