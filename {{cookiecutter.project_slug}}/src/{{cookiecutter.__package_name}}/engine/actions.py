"""What happens during training on which steps: an ``Action`` is a function and when to call it.

A project's own are listed in ``actions.py`` beside ``model.py``. They happen on exact multiples of their period,
whatever ``--steps_per_loop`` is and wherever the run was stopped: the graph loop ends there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .summaries import Writer


@dataclasses.dataclass(frozen=True)
class Context:
    """What an action gets."""

    step: int
    """Number of training steps taken."""

    model: Any
    """The project's model as it is after this step."""

    writer: Writer
    """Writes into the event file of training; writes nothing on a worker that is not the chief."""


@dataclasses.dataclass(frozen=True)
class Action:
    """A function that is called during training, and when."""

    run: Callable[[Context], Any]

    every_steps: int = 0
    """Period in steps; 0 for none."""

    at_steps: tuple[int, ...] = ()
    """Also on exactly these steps."""

    every_seconds: float = float("inf")
    """Also at the end of the graph loop in which this many seconds have passed since the last time."""

    at_end: bool = False
    """Also after the last step, when that is not due anyway; not where early stopping or a signal ended training."""

    everywhere: bool = False
    """On every worker, as is needed where it computes on the strategy's replicas; otherwise on the chief alone."""

    def __post_init__(self) -> None:
        periodic = self.every_steps or self.every_seconds < float("inf")
        if not (periodic or self.at_steps or self.at_end):
            raise ValueError("an action is never due: give it a period, at_steps or at_end=True")
        at_steps: Any = self.at_steps
        if self.every_steps < 0 or self.every_seconds <= 0 or isinstance(at_steps, int):
            raise ValueError("an action's periods are above 0, and at_steps is a tuple of steps")
        if self.everywhere and self.every_seconds < float("inf"):
            raise ValueError(
                "an action cannot have both everywhere=True and every_seconds: workers' clocks differ, and those "
                "that call it would wait for those that do not; use every_steps"
            )

    def is_due(self, step: int) -> bool:
        """Returns whether it is due on this step, whatever the time."""
        return step in self.at_steps or (self.every_steps > 0 and step % self.every_steps == 0)

    def steps_ahead(self, step: int) -> list[int]:
        """Returns in how many steps after ``step`` it is next due."""
        periodic = [self.every_steps - step % self.every_steps] if self.every_steps else []
        return periodic + [due - step for due in self.at_steps if due > step]


def perform(action: Action, context: Context) -> None:
    """Calls an action; what it shows by ``summaries.write`` is written at once."""
    from . import summaries  # imports TensorFlow, which the loop and its signals do without

    def receive(kind: str, name: str, value: Any) -> None:
        context.writer.write(kind, name, value, context.step)

    with summaries.receiving(receive):
        action.run(context)
