"""The model: what it predicts, what it minimises, how it takes a step. Yours to edit.

``Model`` takes plain values and reads no flag, so a test or a notebook makes one with literals. Three methods
share one network: ``inference`` (what it predicts), ``loss`` (the training objective) and ``optimize`` (one
training step). ``metrics`` are what evaluation reports, computed from ``outputs``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from .columns import Column, from_statistics
from .engine import gradients, metrics, optimizers, random
from .engine.dataset import Dataset
from .engine.errors import UserError
from .engine.options import OptimizerOptions
from .engine.trainable import set_trainable
from .preprocessing import Preprocessing
from .vocab import vocab

Columns = Mapping[str, tf.Tensor]


def network(width: int, outputs: int, *, dropout_rate: float) -> keras.Model:
    """Returns a small multi-layer perceptron from preprocessed rows to logits, ``[batch, outputs] float32``.

    A layer's name is its address in checkpoints and patterns: ``dense_1/kernel``. SiLU is smooth, so a rounding
    error sends no gradient another way, as at the kink of a ReLU: Elfwing et al., 2017 (arXiv:1702.03118).
    """
    x = keras.Input((width,), dtype="float32", name=vocab.x)
    h = x
    for i in (1, 2):
        h = keras.layers.Dense(64, activation="silu", name=f"dense_{i}")(h)
        h = random.Dropout(dropout_rate, name=f"dropout_{i}")(h)
    logits = keras.layers.Dense(outputs, dtype="float32", name=vocab.logits)(h)
    return keras.Model(x, logits, name="network")


class Model(tf.Module):
    """A classifier of rows, or, without classes, an estimator of a number."""

    def __init__(
        self,
        *,
        columns: Sequence[Column],
        classes: int = 0,
        mean: float = 0.0,
        stddev: float = 1.0,
        dropout_rate: float = 0.0,
        optimizer: OptimizerOptions | None = None,
        trainable: str = "",
        class_weights: Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        """Makes the network and its optimizer, in the current distribution strategy.

        Args:
            columns: what the model takes, and what to know of it.
            classes: number of classes; 0 where the target is a number.
            mean: mean of a target that is a number, in the training split.
            stddev: its standard deviation, likewise.
            dropout_rate: share of activations dropped in training.
            optimizer: how gradients become updates.
            trainable: regular expression for the paths of the variables to train; empty trains all.
            class_weights: what the loss of an example of each class counts in training; None: all alike.
            seed: decides the initial weights and every draw in training.
        """
        super().__init__(name="model")
        keras.utils.set_random_seed(seed)
        self.seed = seed
        self.classes = classes
        self.class_weights = class_weights
        self.mean, self.stddev = mean, stddev
        self.options = optimizer or OptimizerOptions()
        self.preprocessing = Preprocessing(columns)
        self.network = network(self.preprocessing.width, classes or 1, dropout_rate=dropout_rate)
        set_trainable(self.network, trainable)
        self.optimizer = optimizers.build(self.options, self.network.trainable_variables)
        judged_by = metrics.classification() if classes else metrics.regression()
        self.metrics = (metrics.mean_loss(), judged_by)

    @classmethod
    def for_dataset(
        cls, dataset: Dataset, *, class_weights: bool = False, **arguments: Any
    ) -> "Model":
        """Makes a model for the columns and target of ``dataset``.

        Args:
            dataset: gives columns, classes and statistics.
            class_weights: let all classes count alike in training, however many examples each has.
            arguments: go to the constructor.

        Raises:
            UserError: class weights are wanted where the target is a number.
        """
        statistics = dataset.statistics
        if class_weights and not dataset.classes:
            raise UserError(
                f"--class_weights: {statistics['target']!r} is a number and has no classes; leave it out"
            )
        return cls(
            columns=from_statistics(statistics),
            classes=len(dataset.classes),
            mean=statistics.get("mean", 0.0),
            stddev=statistics.get("stddev", 1.0),
            class_weights=statistics["class_weights"] if class_weights else None,
            **arguments,
        )

    def inference(self, x: Columns) -> tf.Tensor:
        """Returns the probability of each class, ``[batch, classes] float32``, or a number, ``[batch] float32``.

        Args:
            x: for each column of ``dataset.json`` ``[batch]``: float32, not a number where one is missing, or
                string.
        """
        return tf.identity(self._predicted(self._logits(x)), name=vocab.inference)

    def loss(self, x: Columns, y: tf.Tensor | None = None, training: bool = False) -> tf.Tensor:
        """Returns the loss of each example, ``[batch] float32``: cross-entropy, or squared error.

        The squared error is that of the standardised target, so that a learning rate that suits one unit (euros)
        suits another (cents).

        Args:
            x: as for ``inference``.
            y: class of each row, ``[batch] int64``, or its number, ``[batch] float32``.
            training: whether dropout does what it does in training.
        """
        losses = self._losses(y, self._logits(x, training))
        if training and self.class_weights is not None:
            losses *= tf.gather(tf.constant(self.class_weights, tf.float32), y)
        return tf.identity(losses, name=vocab.loss)

    def optimize(self, x: Columns, y: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Takes one training step on this replica's part of a batch; see ``gradients.minimize``."""
        return gradients.minimize(self, x, y)

    def outputs(self, x: Columns, y: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Returns what ``metrics`` are computed from: the ``loss`` of each example and what is predicted.

        Args:
            x: as for ``inference``.
            y: as for ``loss``.
        """
        logits = self._logits(x)
        predicted = {vocab.logits: logits, vocab.inference: self._predicted(logits)}
        return {vocab.loss: self._losses(y, logits), vocab.y: y, **predicted}

    def _logits(self, x: Columns, training: bool = False) -> tf.Tensor:
        logits = self.network(self.preprocessing(x), training=training)
        # Keras names no operation of its result; the identity gives it one that can be found again.
        return tf.identity(logits, name=vocab.logits)

    def _predicted(self, logits: tf.Tensor) -> tf.Tensor:
        return tf.nn.softmax(logits) if self.classes else self.mean + self.stddev * logits[:, 0]

    def _losses(self, y: Any, logits: tf.Tensor) -> tf.Tensor:
        if self.classes:
            return tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        return (logits[:, 0] - (y - self.mean) / self.stddev) ** 2
