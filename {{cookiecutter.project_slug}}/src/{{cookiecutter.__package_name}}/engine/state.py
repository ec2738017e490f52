"""What a run knows beside its variables: the last figures and the best checkpoints."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..vocab import vocab


@dataclasses.dataclass
class State:
    """What a run knows beside its variables; part of every checkpoint."""

    loss: float = float("nan")
    error: float = float("nan")
    best: tuple[tuple[float, int], ...] = ()
    """(validation error, step) of the best evaluations, the best first."""

    def add(self, error: float, step: int, keep: int) -> bool:
        """Takes an evaluation in; returns whether it is among the ``keep`` best. The earlier wins a tie."""
        self.error = error
        others = [entry for entry in self.best if entry[1] != step]
        self.best = tuple(sorted([*others, (error, step)])[:keep])
        return (error, step) in self.best

    def as_values(self) -> dict[str, Any]:
        """Returns it in the form that a checkpoint holds."""
        return {
            vocab.loss: np.float64(self.loss),
            vocab.error: np.float64(self.error),
            vocab.best_error: np.array([error for error, _ in self.best], np.float64),
            vocab.best_step: np.array([step for _, step in self.best], np.int64),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, np.ndarray]) -> "State":
        """Returns the state that ``as_values`` was made from."""
        best = zip(values[vocab.best_error].tolist(), values[vocab.best_step].tolist(), strict=True)
        return cls(float(values[vocab.loss]), float(values[vocab.error]), tuple(best))
