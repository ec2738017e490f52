"""All commands know the flag: what evaluation, the export and the code predict is flatter by it."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Compare with the same weights at temperature 1."""
    if tried.devices != "cpu":
        return
    open_run = tried.module("run").open_run
    calm, hot = open_run("runs/whole"), open_run("runs/whole", temperature=1)
    x = calm.batch("test")["x"]
    expected = hot.model.inference(x).numpy() ** 0.5
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(calm.model.inference(x), expected, atol=1e-5)
    restored = tried.module("engine.export.restored").load("runs/whole/export/1")
    np.testing.assert_allclose(restored.inference(x)["inference"], expected, atol=1e-5)
