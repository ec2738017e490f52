"""Figures of a split from sums over its examples, so that they do not depend on batches or devices.

``*_totals`` add up what one batch on one device contributes, under the name of the figure that it is for;
``*_figures`` divide once everything is added up. A mean of means would be wrong for a last batch that is not
full. Definitions are those of scikit-learn, ``sklearn.metrics``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ..vocab import vocab

Totals = dict[str, tf.Tensor]
Figures = dict[str, Any]


def classification_totals(
    y: tf.Tensor, scores: tf.Tensor, losses: tf.Tensor, weight: tf.Tensor
) -> Totals:
    """Returns the sums that ``classification_figures`` takes.

    Args:
        y: true class, ``[batch] int64``.
        scores: of each class, logits or probabilities, ``[batch, classes] float32``; the highest is predicted.
        losses: ``[batch] float32``.
        weight: ``[batch] float32``, 0 for the padding of the last batch.
    """
    confusion = tf.math.confusion_matrix(
        y, tf.argmax(scores, axis=-1), scores.shape[-1], weights=weight, dtype=tf.float64
    )
    return {**_loss_totals(losses, weight), vocab.confusion: confusion}


def classification_figures(totals: Mapping[str, np.ndarray]) -> Figures:
    """Returns ``loss``, ``error`` (1 - accuracy), ``accuracy``, ``examples``, and by class the rest.

    ``precision``, ``recall`` and ``f1`` are lists in the order of the classes, 0 where they would divide by
    zero; ``confusion`` holds counts ``[true class, predicted class]``.

    Args:
        totals: the sums of ``classification_totals`` over the whole split, as numpy arrays.
    """
    confusion = np.asarray(totals[vocab.confusion], np.float64)
    right, true, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    accuracy = float(right.sum() / totals[vocab.examples])
    return {
        **_loss_figures(totals),
        vocab.error: 1 - accuracy,
        vocab.accuracy: accuracy,
        vocab.precision: _ratio(right, predicted).tolist(),
        vocab.recall: _ratio(right, true).tolist(),
        vocab.f1: _ratio(2 * right, true + predicted).tolist(),
        vocab.confusion: np.rint(confusion).astype(int).tolist(),
    }


def regression_totals(
    y: tf.Tensor, predicted: tf.Tensor, losses: tf.Tensor, weight: tf.Tensor
) -> Totals:
    """Returns the sums that ``regression_figures`` takes.

    Args:
        y: true values, ``[batch] float32``, in the units of the target.
        predicted: likewise.
        losses: ``[batch] float32``.
        weight: ``[batch] float32``, 0 for the padding of the last batch.
    """
    y, predicted = tf.cast(y, tf.float64), tf.cast(predicted, tf.float64)
    counted = tf.cast(weight, tf.float64)
    return {
        **_loss_totals(losses, weight),
        vocab.rmse: tf.reduce_sum((predicted - y) ** 2 * counted),
        vocab.mae: tf.reduce_sum(tf.abs(predicted - y) * counted),
        vocab.r2: tf.stack([tf.reduce_sum(y * counted), tf.reduce_sum(y**2 * counted)]),
    }


def regression_figures(totals: Mapping[str, np.ndarray]) -> Figures:
    """Returns ``loss``, ``error`` (the RMSE), ``rmse``, ``mae``, ``r2`` and ``examples``.

    Args:
        totals: the sums of ``regression_totals`` over the whole split, as numpy arrays.
    """
    examples = totals[vocab.examples]
    total, squares = totals[vocab.r2]
    residual, spread = float(totals[vocab.rmse]), float(squares - total**2 / examples)
    rmse = float(np.sqrt(residual / examples))
    return {
        **_loss_figures(totals),
        vocab.error: rmse,
        vocab.rmse: rmse,
        vocab.mae: float(totals[vocab.mae] / examples),
        # Of targets that are all equal, no share can be explained: scikit-learn's convention.
        vocab.r2: 1 - residual / spread if spread > 0 else float(residual == 0),
    }


def _loss_totals(losses: tf.Tensor, weight: tf.Tensor) -> Totals:
    counted = tf.cast(weight, tf.float64)
    return {
        vocab.examples: tf.reduce_sum(counted),
        vocab.loss: tf.reduce_sum(tf.cast(losses, tf.float64) * counted),
    }


def _loss_figures(totals: Mapping[str, np.ndarray]) -> Figures:
    return {
        vocab.loss: float(totals[vocab.loss] / totals[vocab.examples]),
        vocab.examples: int(np.rint(totals[vocab.examples])),
    }


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
