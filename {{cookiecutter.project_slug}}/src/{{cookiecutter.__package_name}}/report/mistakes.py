"""The highest-loss examples of a split: often they show what is wrong with the data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..engine.examples import Batch, Examples
from ..vocab import vocab


@dataclasses.dataclass(frozen=True)
class HighestLoss:
    """Some examples of a split, the one with the highest loss first."""

    examples: Batch
    """Arrays ``[n, ...]`` by feature; empty where there are none."""

    losses: np.ndarray
    """``[n]``."""

    predicted: Any
    """What the model predicts of them, ``[n, ...]``."""

    def titles(self, classes: Sequence[str]) -> list[str]:
        """Returns what is true and what is predicted of each, in words, as far as it is one class or one number."""
        titles = []
        for i, loss in enumerate(self.losses):
            pair = [self.examples[vocab.y][i]] if vocab.y in self.examples else []
            pair += [self.predicted[i]] if isinstance(self.predicted, np.ndarray) else []
            if classes and [part.shape for part in pair] == [(), (len(classes),)]:
                true, predicted = classes[pair[0]], classes[pair[1].argmax()]
                titles.append(f"{true}, not {predicted} ({loss:.2f})")
            elif [part.size for part in pair] == [1, 1]:
                true, predicted = (f"{part.item():.4g}" for part in pair)
                titles.append(f"{true}, not {predicted} ({loss:.2g})")
            else:
                titles.append(f"loss {loss:.3g}")
        return titles


def highest_loss(
    model: Any, split: Examples, *, batch_size: int, classes: int = 0, count: int = 16
) -> HighestLoss:
    """Returns the examples with the highest loss; of a classifier, of those that it gets wrong.

    Args:
        model: has ``inference`` and ``loss``.
        split: to look through.
        batch_size: examples to look at in one call.
        classes: how many ``y`` may be; 0 where it is none.
        count: how many to return at most.
    """

    def judge(batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss of each example, and whether it may be among those returned."""
        losses, predicted = model.loss(**batch), model.inference(batch[vocab.x])
        if not classes or vocab.y not in batch or not _are_scores(predicted, classes):
            return losses, tf.ones_like(losses, tf.bool)
        y = batch[vocab.y]
        return losses, tf.argmax(predicted, axis=1, output_type=y.dtype) != y

    def batch_from(start: int) -> Batch:
        # The last batch is filled up with its last example, so that there is one shape and one trace.
        return split.fetch(np.minimum(np.arange(start, start + batch_size), split.examples - 1))

    compiled = tf.function(judge).get_concrete_function(batch_from(0))
    losses, chosen = [], []
    for start in range(0, split.examples, batch_size):
        loss, is_chosen = compiled(batch_from(start))
        losses.append(loss.numpy())
        chosen.append(is_chosen.numpy())
    loss = np.concatenate(losses)[: split.examples]
    order = np.argsort(-loss, kind="stable")
    order = order[np.concatenate(chosen)[order]][:count]
    if not len(order):
        return HighestLoss({}, loss[order], np.array([]))
    found = split.fetch(order)
    predicted = model.inference(found[vocab.x])
    return HighestLoss(
        tf.nest.map_structure(np.asarray, found),
        loss[order],
        tf.nest.map_structure(np.asarray, predicted),
    )


def _are_scores(predicted: Any, classes: int) -> bool:
    return tf.is_tensor(predicted) and predicted.shape.rank == 2 and predicted.shape[1] == classes
