"""The backbone starts from a file of weights, its normalisation is synchronised, and its names stay."""

from typing import Any

import numpy as np


def backbone() -> Any:
    """Return the network of the page, from a seed."""
    import keras

    keras.utils.set_random_seed(7)
    return keras.applications.MobileNetV2(
        (32, 32, 3), alpha=0.35, include_top=False, weights=None, pooling="avg", name="backbone"
    )


def before(tried: Any) -> None:
    """Write the weights that the page's command reads."""
    backbone().save_weights("backbone.weights.h5")


def check(tried: Any) -> None:
    """The frozen backbone still has the file's weights, moving statistics included."""
    found = tried.variables("runs/whole" if tried.devices == "cpu" else "runs/several")
    expected = {v.path: np.asarray(v) for v in backbone().weights}
    assert len(expected) > 200
    for path, value in expected.items():
        np.testing.assert_array_equal(found[f"inference/{path}"], value, err_msg=path)
