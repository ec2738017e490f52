"""The weight reaches the loss of training, and no other."""

from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Compare losses with and without weights."""
    if tried.devices != "cpu":
        return
    import tensorflow as tf

    run = tried.module("run").open_run("runs/whole", dropout_rate=0)
    batch = run.batch("train", 64)
    np.testing.assert_array_equal(batch["importance"], np.where(batch["y"] == 8, 3, 1))
    random = tried.module("engine.random")
    with random.draws(0, tf.constant(0, tf.int64), tf.constant(0)):
        weighted = run.model.loss(**batch, training=True).numpy()
        plain = run.model.loss(batch["x"], batch["y"], training=True).numpy()
    np.testing.assert_allclose(weighted, plain * batch["importance"], rtol=1e-6)
    losses = run.model.loss(**batch).numpy()
    np.testing.assert_allclose(run.model.outputs(**batch)["loss"], losses, rtol=1e-6)
