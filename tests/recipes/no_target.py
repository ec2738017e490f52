"""Evaluation equals NumPy's on the same images, and each prediction is a whole image."""

import json
from pathlib import Path
from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Reconstruct images from the data set and from files."""
    if tried.devices != "cpu":
        return
    from PIL import Image

    run = tried.module("run").open_run("runs/whole")
    batch = run.batch("validation", 10_000)
    assert batch.keys() == {"x"}
    predicted = run.model.inference(batch["x"]).numpy()
    rmse = np.sqrt(np.mean((predicted - batch["x"].numpy()) ** 2.0))
    np.testing.assert_allclose(tried.results["evaluate"]["error"], rmse, rtol=1e-5)
    Image.fromarray(batch["x"].numpy()[0, ..., 0]).save("one.png")
    place = ("--model_dir=runs/whole", "--devices=cpu", "--input=one.png")
    tried.run("predict", *place, "--output=predictions.jsonl")
    [line] = Path("predictions.jsonl").read_text().splitlines()
    found = np.array(json.loads(line)["inference"])
    np.testing.assert_allclose(found, predicted[0], atol=1e-3)
    tried.run("predict", *place, "--output=predictions.csv")
    header, row = Path("predictions.csv").read_text().splitlines()
    assert header.count(",") == row.count(",") == 64
