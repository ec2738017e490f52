"""Both networks train, each with its own optimizer; a checkpoint holds both."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Look at what moved and at the curves of both losses."""
    if tried.devices != "cpu":
        return
    tried.train("runs/short", steps=1)
    early, late = tried.variables("runs/short", 1), tried.variables("runs/whole")
    assert early.keys() == late.keys()
    for key in ("generator/dense_1/kernel", "discriminator/dense_1/kernel"):
        assert np.abs(late[key] - early[key]).max() > 1e-4, key
    curves = tried.events("runs/whole")
    assert list(curves["loss"]) == list(curves["generator_loss"]) == [5, 10, 15, 20]
