"""The model: what it predicts, what it minimises, how it takes a step. Yours to edit.

``Model`` takes plain values and reads no flag, so a test or a notebook makes one with literals. Three methods
share one network: ``inference`` (what it predicts), ``loss`` (the training objective) and ``optimize`` (one
training step). ``metrics`` are what evaluation reports, computed from ``outputs``.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from .engine import gradients, metrics, optimizers, random
from .engine.dataset import Dataset
from .engine.options import OptimizerOptions
from .engine.trainable import set_trainable
from .vocab import vocab


def network(
    image_shape: Sequence[int],
    classes: int,
    *,
    mean: Sequence[float],
    stddev: Sequence[float],
    dropout_rate: float,
) -> keras.Model:
    """Returns a small convolutional network from raw pixels to logits, ``[batch, classes] float32``.

    A layer's name is its address in checkpoints and patterns: ``conv_1/kernel``. A convolution before
    batch normalisation has no bias, since the normalisation would take it away again.

    Activations and pooling are smooth. At the kink of a ReLU, or between two equal values of a max-pooling, a
    rounding error decides where a gradient goes: after 100 steps one device and four once differed by 6e-5 in
    the weights. SiLU: Elfwing et al., 2017 (arXiv:1702.03118).
    """
    x = keras.Input(tuple(image_shape), dtype="float32", name=vocab.x)
    h = keras.layers.Rescaling(
        scale=[1 / max(s, 1e-6) for s in stddev],
        offset=[-m / max(s, 1e-6) for m, s in zip(mean, stddev, strict=True)],
        name="standardize",
    )(x)
    for i, filters in enumerate((16, 32), start=1):
        h = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False, name=f"conv_{i}")(h)
        h = keras.layers.BatchNormalization(
            momentum=0.9, synchronized=True, name=f"normalization_{i}"
        )(h)
        h = keras.layers.Activation("silu", name=f"silu_{i}")(h)
        h = keras.layers.AveragePooling2D(2, padding="same", name=f"pool_{i}")(h)
    h = keras.layers.Flatten(name="flatten")(h)
    h = random.Dropout(dropout_rate, name="dropout_1")(h)
    h = keras.layers.Dense(128, activation="silu", name="dense_1")(h)
    h = random.Dropout(dropout_rate, name="dropout_2")(h)
    logits = keras.layers.Dense(classes, dtype="float32", name=vocab.logits)(h)
    return keras.Model(x, logits, name="network")


class Model(tf.Module):
    """An image classifier."""

    def __init__(
        self,
        *,
        image_shape: Sequence[int] = (8, 8, 1),
        classes: int = 10,
        mean: Sequence[float] = (0.0,),
        stddev: Sequence[float] = (255.0,),
        dropout_rate: float = 0.0,
        optimizer: OptimizerOptions | None = None,
        trainable: str = "",
        class_weights: Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        """Makes the network and its optimizer, in the current distribution strategy.

        Args:
            image_shape: ``(height, width, channels)``.
            classes: number of classes.
            mean: mean of each channel in the training split, in pixel values 0 to 255.
            stddev: standard deviation of each channel, likewise.
            dropout_rate: share of activations dropped in training.
            optimizer: how gradients become updates.
            trainable: regular expression for the paths of the variables to train; empty trains all.
            class_weights: what the loss of an example of each class counts in training; None: all alike.
            seed: decides the initial weights and every draw in training.
        """
        super().__init__(name="model")
        keras.utils.set_random_seed(seed)
        self.seed = seed
        self.class_weights = class_weights
        self.options = optimizer or OptimizerOptions()
        self.network = network(
            image_shape, classes, mean=mean, stddev=stddev, dropout_rate=dropout_rate
        )
        set_trainable(self.network, trainable)
        self.optimizer = optimizers.build(self.options, self.network.trainable_variables)
        self.metrics = (metrics.mean_loss(), metrics.classification())

    @classmethod
    def for_dataset(
        cls, dataset: Dataset, *, class_weights: bool = False, **arguments: Any
    ) -> "Model":
        """Makes a model for the images and classes of ``dataset``.

        Args:
            dataset: gives shapes, classes and statistics.
            class_weights: let all classes count alike in training, however many examples each has.
            arguments: go to the constructor.
        """
        weights = dataset.statistics["class_weights"] if class_weights else None
        return cls(
            class_weights=weights,
            image_shape=dataset.features[vocab.x].shape,
            classes=len(dataset.classes),
            mean=dataset.statistics["mean"],
            stddev=dataset.statistics["stddev"],
            **arguments,
        )

    def inference(self, x: tf.Tensor) -> tf.Tensor:
        """Returns the probability of each class, ``[batch, classes] float32``, for images ``x``.

        Args:
            x: ``[batch, height, width, channels]``, pixel values 0 to 255 of any number type.
        """
        return tf.identity(tf.nn.softmax(self._logits(x)), name=vocab.inference)

    def loss(self, x: tf.Tensor, y: tf.Tensor | None = None, training: bool = False) -> tf.Tensor:
        """Returns the cross-entropy of each example, ``[batch] float32``.

        Args:
            x: as for ``inference``.
            y: class of each image, ``[batch] int64``.
            training: whether dropout and batch normalisation do what they do in training.
        """
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, self._logits(x, training))
        if training and self.class_weights is not None:
            losses *= tf.gather(tf.constant(self.class_weights, tf.float32), y)
        return tf.identity(losses, name=vocab.loss)

    def optimize(self, x: tf.Tensor, y: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Takes one training step on this replica's part of a batch; see ``gradients.minimize``."""
        return gradients.minimize(self, x, y)

    def outputs(self, x: tf.Tensor, y: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Returns what ``metrics`` are computed from: the ``loss`` of each example, ``logits`` and ``y``.

        Args:
            x: as for ``inference``.
            y: class of each image, ``[batch] int64``.
        """
        logits = self._logits(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        return {vocab.loss: losses, vocab.logits: logits, vocab.y: y}

    def _logits(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        expected = self.network.input_shape[1:]
        if x.shape[1:] != expected:
            raise ValueError(f"x has the shape {x.shape}, the model expects [batch, {expected}]")
        logits = self.network(tf.cast(x, tf.float32), training=training)
        # Keras names no operation of its result; the identity gives it one that can be found again.
        return tf.identity(logits, name=vocab.logits)
