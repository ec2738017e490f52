"""The curve is the norm of the weights of the steps since the last point; logits are a histogram of all replicas."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Compare the curves of one device and of two."""
    events = tried.events("runs/whole" if tried.devices == "cpu" else "runs/several")
    curve = {step: float(value.simple_value) for step, value in events["weight_norm"].items()}
    assert list(curve) == [5, 10, 15, 20]
    assert all(np.isfinite(value) and value > 0 for value in curve.values())
    assert list(events["logits"]) == [5, 10, 15, 20]
    if tried.devices != "cpu":
        one = tried.events("runs/whole")
        for step, value in curve.items():
            np.testing.assert_allclose(value, one["weight_norm"][step].simple_value, rtol=1e-5)
        for step, value in events["logits"].items():
            counts = [tried.histogram(v)[:, 2].sum() for v in (value, one["logits"][step])]
            assert counts[0] == counts[1]
