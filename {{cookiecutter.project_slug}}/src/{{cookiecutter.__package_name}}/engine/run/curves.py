"""What a training shows in TensorBoard: curves, samples, the graph, histograms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ...vocab import per_variable, vocab
from .. import summaries
from . import events
from .protocols import Model
from .state import State
from .variables import network_variables

_OF_THE_STEP = (vocab.learning_rate, vocab.gradient_norm, vocab.input_wait)
"""Curves of one step's values; the others are means over the steps since the last point."""


class Curves:
    """The event files of a run: ``train/`` and ``validation/``."""

    def __init__(self, folder: Path | None, last_step: int) -> None:
        """Opens the event files; what they hold of steps that will be taken again is cut off.

        Args:
            folder: of the run; None on a worker that is not the chief writes nothing.
            last_step: step that the run goes on from; -1 if it begins.
        """
        folders = {name: folder / name if folder else None for name in ("train", "validation")}
        for part in folders.values():
            if part is not None:
                events.drop_after(part, last_step)
        self.train, self._validation = map(summaries.Writer, folders.values())

    def begin(self, model: Model, x: Any) -> None:
        """Shows examples as the model gets them, if they are images, and the graph from them to its predictions."""
        if summaries.are_images(x):
            self.train.write("images", vocab.x, x, 0)
        self.train.graph(model.inference, x, vocab.x)

    def steps(
        self,
        state: State,
        taken: np.ndarray,
        scalars: Mapping[str, np.ndarray],
        *,
        every: int,
        examples_per_second: float,
    ) -> None:
        """Takes steps into the state's means, and writes a point of each curve at the steps that are due.

        Args:
            state: of the run.
            taken: ``[n] int64``, the steps.
            scalars: by name, ``[n] float32``.
            every: period of the points.
            examples_per_second: throughput of these steps.
        """
        due = taken % every == 0
        names = [name for name in scalars if name not in _OF_THE_STEP]
        means = state.add_steps(names, np.stack([scalars[name] for name in names], 1), due)
        if due.any():
            points = {name: values[due] for name, values in scalars.items()}
            points |= dict(zip(names, means.T, strict=True))
            points[vocab.examples_per_second] = np.full(due.sum(), examples_per_second, np.float32)
            self.train.scalars(taken[due], points)

    def evaluation(self, step: int, validation: Mapping[str, float], train_error: float) -> None:
        """Writes metrics of the validation split, and the error on as many training examples."""
        at = np.array([step])
        self.train.scalars(at, {vocab.error: np.array([train_error], np.float32)})
        self._validation.scalars(
            at, {name: np.array([value], np.float32) for name, value in validation.items()}
        )


def histograms(model: Model, last: Mapping[str, tf.Tensor]) -> None:
    """Shows histograms of all weights and gradients, and the norm of each gradient.

    Args:
        model: whose weights.
        last: what the last step reported, gradients among it.
    """
    prefix = per_variable(vocab.gradient, "")
    gradients = {name: value for name, value in last.items() if name.startswith(prefix)}
    weights = {key: v.value for key, v in network_variables(model).items()}
    for name, value in (weights | gradients).items():
        summaries.write("histogram", name, value)
    for name, value in gradients.items():
        norm = per_variable(vocab.gradient_norm, name.removeprefix(prefix))
        summaries.write("scalar", norm, tf.norm(value))
