"""What the engine asks of a model. ``model.py`` needs no base class, only these attributes and methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from ..errors import UserError
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


def is_old(model: Any) -> bool:
    """Returns whether a model has the methods of the last release, ``totals`` and ``figures``."""
    return hasattr(model, "totals") and not hasattr(model, "metrics")


def check_features(method: Callable[..., Any], features: Iterable[str]) -> None:
    """Checks that a method of the model takes the features of the data by name.

    Raises:
        UserError: it has no argument of one's name.
    """
    arguments = inspect.signature(method).parameters
    if any(argument.kind is argument.VAR_KEYWORD for argument in arguments.values()):
        return
    for feature in features:
        if feature not in arguments:
            raise UserError(
                f"the data has the feature {feature!r}, but the model's {method.__name__} no argument of this name: "
                "add it, or leave the feature out in data.open_split"
            )
