"""The arrays are what training reads: a batch holds them, whatever the order."""

from pathlib import Path
from typing import Any

import numpy as np

PREPARES = False


def before(tried: Any) -> None:
    """Write the arrays."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    Path("arrays").mkdir(exist_ok=True)
    np.save("arrays/images.npy", np.rint(digits.images * 255 / 16).astype(np.uint8)[..., None])
    np.save("arrays/labels.npy", digits.target.astype(np.int64))


def check(tried: Any) -> None:
    """Compare a batch with the arrays."""
    if tried.devices == "cpu":
        run = tried.module("run").open_run("runs/whole")
        batch = run.batch("validation", 5)
        images, labels = np.load("arrays/images.npy"), np.load("arrays/labels.npy")
        start = len(images) * 8 // 10
        np.testing.assert_array_equal(batch["x"], images[start : start + 5])
        np.testing.assert_array_equal(batch["y"], labels[start : start + 5])
