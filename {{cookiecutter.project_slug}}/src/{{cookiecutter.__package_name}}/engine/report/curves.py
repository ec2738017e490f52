"""What a training shows of itself in TensorBoard: curves, samples, histograms."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ...vocab import per_variable, vocab
from ..summaries import Writer
from . import events


class Curves:
    """The event files of one run: ``train/`` and ``validation/``."""

    def __init__(self, folder: Path, last_step: int | None, *, writes: bool = True) -> None:
        """Opens the event files; what they hold of steps that will be taken again is cut off.

        Args:
            folder: of the run.
            last_step: step that the run goes on from; None if it begins.
            writes: whether this process writes; of several that train together, one does.
        """
        if writes:
            for name in ("train", "validation"):
                events.drop_after(folder / name, -1 if last_step is None else last_step)
        self._train = Writer(folder / "train", writes=writes)
        self._validation = Writer(folder / "validation", writes=writes)

    def training(self, steps: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """Writes values of training steps: ``steps`` is ``[n] int64``, each of ``values`` ``[n] float32``."""
        self._train.scalars(steps, values)

    def evaluation(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the figures of the validation split after ``step`` steps."""
        self._validation.scalars(
            np.array([step]), {name: np.array([v], np.float32) for name, v in values.items()}
        )

    def samples(self, x: tf.Tensor) -> None:
        """Shows examples as the model gets them, if they are images."""
        self._train.images(x, step=0)

    def graph(self, inference: Callable[[Any], Any], x: Any) -> None:
        """Shows the operations from the inputs to what the model predicts, in the scopes of its layers.

        Args:
            inference: of the model.
            x: examples, of which only shapes and dtypes count.
        """
        specs = tf.nest.map_structure(
            lambda part: tf.TensorSpec([None, *part.shape[1:]], part.dtype, name=vocab.x), x
        )
        self._train.graph(tf.function(inference).get_concrete_function(specs).graph)

    def histograms(
        self, step: int, variables: list[keras.Variable], gradients: Mapping[str, tf.Tensor]
    ) -> None:
        """Writes histograms of variables and of their gradients, and the gradients' norms.

        Args:
            step: number of steps taken.
            variables: of the network.
            gradients: of the last step, by ``gradient/<path>``.
        """
        values: dict[str, Any] = {per_variable(vocab.inference, v.path): v.value for v in variables}
        self._train.histograms(step, values | dict(gradients))
        norms = {
            f"{vocab.gradient_norm}{name.removeprefix(vocab.gradient)}": np.array([tf.norm(value)])
            for name, value in gradients.items()
        }
        self._train.scalars(np.array([step]), norms)
