"""What the engine asks of a model. ``model.py`` needs no base class, only these attributes and methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from ..options import OptimizerOptions

if TYPE_CHECKING:
    from ..metrics import Metric


class Model(Protocol):
    """A model that the engine can train, evaluate and save.

    Its variables are those of ``network``, a Keras network, trained by ``optimizer``, which counts the steps. A model
    with several has ``networks`` and ``optimizers`` instead, both by name; the first optimizer counts the steps.

    A batch comes by the names of its features: ``x``, ``y``, and any other as one more argument of the same name.
    """

    options: OptimizerOptions
    """What is done to gradients."""

    seed: int
    """Decides what is drawn in training."""

    metrics: Sequence[Metric]
    """By which the model is judged; ``loss`` and ``error`` are among their results."""

    def inference(self, x: Any) -> Any:
        """Returns what the model predicts from ``x``, ``[batch, ...]``."""
        ...

    def loss(self, x: Any, y: Any = None, training: bool = False) -> tf.Tensor:
        """Returns the loss of each example, ``[batch] float32``."""
        ...

    def optimize(self, x: Any, y: Any = None) -> dict[str, tf.Tensor]:
        """Takes a training step on this replica's part of a batch; see ``gradients.minimize`` for what it returns.

        Any scalar more becomes a curve, averaged over replicas.
        """
        ...

    def outputs(self, x: Any, y: Any = None) -> dict[str, tf.Tensor]:
        """Returns what the metrics are computed from, ``[batch, ...]`` each."""
        ...
