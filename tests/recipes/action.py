"""The norms are those of the checkpoint of the same step."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Compare curves and checkpoint."""
    run = "runs/whole" if tried.devices == "cpu" else "runs/several"
    curves = tried.events(run)
    kernel = tried.variables(run)["inference/dense_1/kernel"]
    curve = curves["weight_norm/dense_1/kernel"]
    assert list(curve) == [10, 20]
    np.testing.assert_allclose(curve[20].simple_value, np.linalg.norm(kernel), rtol=1e-5)
