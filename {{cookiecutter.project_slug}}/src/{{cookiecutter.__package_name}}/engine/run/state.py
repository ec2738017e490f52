"""What a run knows beside its variables; saved in the same checkpoint, so that the two cannot disagree."""

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class DataPosition:
    """Which data a run is reading, and since when: with the step, this is its place in the data."""

    fingerprint: str
    """Of the data set; see ``dataset.Dataset``."""

    examples: int
    """Number of training examples in use."""

    batch_size: int
    seed: int
    first_step: int = 0
    """Step at which this data was begun: 0, or where ``--continue_on_new_data`` took it up."""


@dataclasses.dataclass
class State:
    """The state of a run after some step."""

    data: DataPosition
    loss: float = float("nan")
    """Training loss of the last step."""

    error: float = float("nan")
    """Validation error of the last evaluation."""

    validation_loss: float = float("nan")
    """Validation loss of the last evaluation."""

    best: tuple[tuple[float, int], ...] = ()
    """(validation error, step) of the best evaluations, the best first."""

    evaluations_since_best: int = 0

    sums: dict[str, float] = dataclasses.field(default_factory=dict)
    """Of each curve that shows means, the sum over the steps since its last point."""

    summed: int = 0
    """Number of these steps."""

    def add_steps(self, names: Sequence[str], rows: np.ndarray, due: np.ndarray) -> np.ndarray:
        """Takes steps into the sums; returns the means at the steps that are due, ``[due, names] float32``.

        The sums are taken step by step in float64, so that they do not depend on where a graph loop ended.

        Args:
            names: of the curves.
            rows: ``[steps, names] float32``.
            due: ``[steps] bool``.
        """
        if set(names) != set(self.sums):  # a curve more or less than before this resume
            self.sums, self.summed = {}, 0
        sums = np.array([self.sums.get(name, 0.0) for name in names])
        means = []
        for row, is_due in zip(rows.astype(np.float64), due, strict=True):
            sums = sums + row
            self.summed += 1
            if is_due:
                means.append(sums / self.summed)
                sums, self.summed = np.zeros(len(names)), 0
        self.sums = dict(zip(names, sums.tolist(), strict=True))
        return np.array(means, np.float32).reshape(-1, len(names))

    def add_evaluation(
        self, error: float, step: int, keep: int, loss: float = float("nan")
    ) -> bool:
        """Takes an evaluation in; returns whether it is among the ``keep`` best.

        Of two equal errors the earlier is better.
        """
        self.error, self.validation_loss = error, loss
        improved = error < min((best for best, _ in self.best), default=math.inf)
        self.evaluations_since_best = 0 if improved else self.evaluations_since_best + 1
        if not math.isfinite(error):
            return False
        self.best = tuple(sorted([*self.best, (error, step)])[:keep])
        return (error, step) in self.best

    def go_on_with(self, data: DataPosition, step: int) -> list[str]:
        """Takes up other data after ``step`` steps, if it is other; returns what is other about it."""
        before = dataclasses.asdict(self.data)
        now = dataclasses.asdict(data) | {"first_step": self.data.first_step}
        changes = [f"{k}: {before[k]} before, {now[k]} now" for k in now if now[k] != before[k]]
        if changes:
            self.data = dataclasses.replace(data, first_step=step)
        if before["fingerprint"] != data.fingerprint:  # errors on another split cannot be compared
            self.best, self.evaluations_since_best = (), 0
        return changes

    def to_json(self) -> str:
        """Returns the state as text; numbers keep all their bits."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "State":
        """Returns the state that ``to_json`` wrote, also that of an earlier release."""
        values: dict[str, Any] = json.loads(text)
        values["data"] = DataPosition(**values["data"])
        values["best"] = tuple((error, step) for error, step in values["best"])
        return cls(**values)
