"""Evaluation equals scikit-learn's on the same predictions, and a prediction has a column for each number."""

from pathlib import Path
from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Compare metrics and predictions of a file."""
    if tried.devices != "cpu":
        return
    from PIL import Image
    from sklearn.metrics import mean_absolute_error, mean_squared_error

    run = tried.module("run").open_run("runs/whole")
    batch = run.batch("validation", 10_000)
    predicted, y = run.model.inference(batch["x"]).numpy(), batch["y"].numpy()
    found = tried.results["evaluate"]
    np.testing.assert_allclose(found["rmse"], mean_squared_error(y, predicted) ** 0.5, rtol=1e-5)
    np.testing.assert_allclose(found["mae"], mean_absolute_error(y, predicted), rtol=1e-5)
    Image.fromarray(batch["x"].numpy()[0, ..., 0]).save("one.png")
    place = ("--model_dir=runs/whole", "--devices=cpu", "--input=one.png")
    tried.run("predict", *place, "--output=predictions.csv")
    row = Path("predictions.csv").read_text().splitlines()[1]
    values = [float(value) for value in row.split(",")[1:]]
    np.testing.assert_allclose(values, predicted[0], atol=1e-4)
