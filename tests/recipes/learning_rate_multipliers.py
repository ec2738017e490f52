"""One step moves the layers that match a tenth as far, with AdamW; the others as far as ever."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Compare a first step with and without multipliers."""
    if tried.devices != "cpu":
        return
    plain = ("--optimizer=adamw", "--train_steps=1", "--warmup_steps=0", "--devices=cpu")
    tried.run("train", *plain, "--model_dir=runs/fast")
    tried.run("train", *plain, "--model_dir=runs/start", "--learning_rate=1e-30")
    tried.run("train", *plain, *tried.flags("train"), "--model_dir=runs/slow")
    start, slow, fast = (tried.variables(f"runs/{name}", 1) for name in ("start", "slow", "fast"))
    for key, expected in (("inference/dense_1/kernel", 0.1), ("inference/logits/kernel", 1)):
        ratio = np.linalg.norm(slow[key] - start[key]) / np.linalg.norm(fast[key] - start[key])
        np.testing.assert_allclose(ratio, expected, rtol=0.02)
