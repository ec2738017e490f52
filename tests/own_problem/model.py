"""The model: convolutions that look back only, and predict the next value of a series."""

from typing import Any

import keras
import tensorflow as tf

from .engine import gradients, metrics, optimizers, random
from .engine.dataset import Dataset
from .engine.errors import UserError
from .engine.options import OptimizerOptions
from .engine.trainable import set_trainable
from .vocab import vocab


class Model(tf.Module):
    """A regressor of series."""

    def __init__(
        self,
        *,
        steps: int,
        dropout_rate: float = 0.0,
        optimizer: OptimizerOptions | None = None,
        trainable: str = "",
        seed: int = 0,
    ) -> None:
        """Makes the network and its optimizer, for series of ``steps`` values."""
        super().__init__(name="model")
        keras.utils.set_random_seed(seed)
        self.seed = seed
        self.options = optimizer or OptimizerOptions()
        x = keras.Input((steps, 1), dtype="float32", name=vocab.x)
        h = x
        for i, dilation in enumerate((1, 2, 4), start=1):
            h = keras.layers.Conv1D(
                16, 3, dilation_rate=dilation, padding="causal", activation="silu", name=f"conv_{i}"
            )(h)
        h = random.Dropout(dropout_rate, name="dropout")(h[:, -1])
        next_value = keras.layers.Dense(1, dtype="float32", name=vocab.next_value)(h)
        self.network = keras.Model(x, next_value, name="network")
        set_trainable(self.network, trainable)
        self.optimizer = optimizers.build(self.options, self.network.trainable_variables)
        self.metrics = (metrics.mean_loss(), metrics.regression())

    @classmethod
    def for_dataset(
        cls, dataset: Dataset, *, class_weights: bool = False, **arguments: Any
    ) -> "Model":
        """Makes a model for the series of ``dataset``; ``arguments`` go to the constructor."""
        if class_weights:
            raise UserError("--class_weights: a series has no classes; leave it out")
        return cls(steps=dataset.features[vocab.x].shape[0], **arguments)

    def inference(self, x: tf.Tensor) -> tf.Tensor:
        """Returns the next value, ``[batch] float32``, of series ``[batch, steps, 1]``."""
        return tf.identity(self._next(x), name=vocab.inference)

    def loss(self, x: tf.Tensor, y: tf.Tensor | None = None, training: bool = False) -> tf.Tensor:
        """Returns the squared error of each example, ``[batch] float32``."""
        return tf.identity((self._next(x, training) - y) ** 2, name=vocab.loss)

    def optimize(self, x: tf.Tensor, y: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Takes one training step on this replica's part of a batch; see ``gradients.minimize``."""
        return gradients.minimize(self, x, y)

    def outputs(self, x: tf.Tensor, y: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Returns what ``metrics`` are computed from."""
        predicted = self._next(x)
        return {vocab.loss: (predicted - y) ** 2, vocab.inference: predicted, vocab.y: y}

    def _next(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        return self.network(x, training=training)[:, 0]
