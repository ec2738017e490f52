"""What the engine asks of a model. ``model.py`` needs no base class, only these methods."""

from collections.abc import Mapping
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

from ..options import OptimizerOptions


class Model(Protocol):
    """A model that the engine can train, judge and save."""

    network: keras.Model
    """Holds the variables."""

    optimizer: keras.optimizers.Optimizer
    """Made by ``optimizers.build`` for the network's trainable variables; counts the steps."""

    options: OptimizerOptions
    """How gradients become updates."""

    def inference(self, x: tf.Tensor) -> Any:
        """Returns what the model predicts from ``x``, ``[batch, ...]``."""
        ...

    def loss(self, x: tf.Tensor, y: tf.Tensor | None = None, training: bool = False) -> tf.Tensor:
        """Returns the loss of each example, ``[batch] float32``."""
        ...

    def optimize(self, x: tf.Tensor, y: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Takes a training step on this replica's part of a batch; see ``gradients.minimize`` for what it returns."""
        ...

    def totals(self, x: tf.Tensor, y: tf.Tensor, weight: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns sums over the examples of a batch, each counted ``weight`` times, ``[batch] float32``."""
        ...

    def figures(self, totals: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Returns what is reported of a split, ``loss`` and ``error`` among it, from the sums over all of it."""
        ...
