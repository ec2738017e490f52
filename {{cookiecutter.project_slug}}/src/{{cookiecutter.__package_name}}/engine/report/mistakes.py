"""The examples that a model gets most wrong: often they show what is wrong with the data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...vocab import vocab
from ..examples import Batch, Examples


@dataclasses.dataclass(frozen=True)
class Mistakes:
    """Some examples of a split, the worst first."""

    examples: dict[str, Any]
    """``x``, by column if it has any, and ``y``, ``[n, ...]`` each; empty where there are no mistakes."""

    losses: np.ndarray
    """``[n]``."""

    predicted: np.ndarray
    """What the model makes of them, ``[n, ...]``."""

    def titles(self, classes: Sequence[str]) -> list[str]:
        """Returns what is and what was predicted, of each example, in words."""
        truths = self.examples.get(vocab.y, self.losses)
        titles = []
        for truth, predicted, loss in zip(truths, self.predicted, self.losses, strict=True):
            if classes:
                titles.append(f"{classes[truth]}, not {classes[predicted.argmax()]} ({loss:.2f})")
            else:
                titles.append(f"{truth:.4g}, not {float(predicted):.4g} ({loss:.2g})")
        return titles


def worst(model: Any, split: Examples, *, batch_size: int, count: int = 16) -> Mistakes:
    """Returns the examples with the largest loss; of a classifier, those that it gets wrong.

    Args:
        model: has ``inference`` and ``loss``.
        split: to look through.
        batch_size: examples to look at in one call.
        count: how many to return at most.
    """

    @tf.function
    def judge(batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        x, y = batch[vocab.x], batch.get(vocab.y)
        return model.loss(x, y), model.inference(x)

    losses, predictions = [], []
    for start in range(0, split.examples, batch_size):
        # The last batch is filled up with its last example, so that there is one shape and one trace.
        batch = split.fetch(np.minimum(np.arange(start, start + batch_size), split.examples - 1))
        loss, predicted = judge(batch)
        losses.append(loss.numpy())
        predictions.append(predicted.numpy())
    loss = np.concatenate(losses)[: split.examples]
    predicted = np.concatenate(predictions)[: split.examples]
    order = np.argsort(-loss, kind="stable")
    if predicted.ndim == 2 and predicted.shape[1] > 1:
        truth = split.fetch(np.arange(split.examples))[vocab.y].numpy()
        order = order[predicted.argmax(axis=1)[order] != truth[order]]
    chosen = order[:count]
    examples = tf.nest.map_structure(np.asarray, split.fetch(chosen) if len(chosen) else {})
    return Mistakes(examples, loss[chosen], predicted[chosen])
