"""The optimizer is the one of the page, and what the transform takes out stays out."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Momentum of gradients whose mean is zero has a mean of zero."""
    found = tried.variables("runs/whole")
    moments = [key for key in found if key.endswith("kernel_momentum")]
    assert moments, sorted(found)
    for key in moments:
        value = found[key]
        mean = value.mean(axis=tuple(range(value.ndim - 1)))
        assert np.abs(mean).max() < 1e-4 * np.abs(value).max(), key
