"""The new run starts from the weights that the script saved."""

from typing import Any

import numpy as np


def before(tried: Any) -> None:
    """Train the run that the script opens."""
    tried.run("train", "--model_dir=runs/baseline", "--train_steps=5", "--devices=cpu")


def check(tried: Any) -> None:
    """Of two steps of learning rate zero nothing remains but the weights that were read."""
    import tensorflow as tf

    tried.train("runs/read", "--learning_rate=1e-30", steps=2)
    saved = tf.train.load_checkpoint("weights/ckpt-0")
    names = saved.get_variable_to_shape_map()
    assert names
    assert all(name.startswith("inference/") for name in names)
    found = tried.variables("runs/read", 2)
    for name in names:
        if "normalization" not in name:
            expected = saved.get_tensor(name)
            np.testing.assert_allclose(found[name], expected, atol=1e-25, err_msg=name)
    assert not saved.get_tensor("inference/logits/bias").any()
