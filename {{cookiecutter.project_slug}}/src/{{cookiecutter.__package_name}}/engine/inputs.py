"""What ``predict`` reads, whatever kind of input it is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Inputs:
    """Examples to predict, read one at a time."""

    names: list[str]
    """Of each example, for the output and for messages."""

    read: Callable[[int], dict[str, np.ndarray]]
    """From the number of an example to the model's inputs by name, without the batch; raises UserError."""
