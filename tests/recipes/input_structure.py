"""Both inputs reach what is predicted, from the code, from an export and from files."""

from pathlib import Path
from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Predict images in files, whose other input is computed."""
    if tried.devices != "cpu":
        return
    from PIL import Image

    run = tried.module("run").open_run("runs/whole")
    x = run.batch("test", 3)["x"]
    assert x.keys() == {"image", "ink"}
    predicted = run.model.inference(x).numpy()
    without = run.model.inference({**x, "ink": 1 - x["ink"]}).numpy()
    assert np.abs(predicted - without).max() > 1e-5
    Path("images").mkdir(exist_ok=True)
    for i, image in enumerate(x["image"].numpy()):
        Image.fromarray(image[..., 0]).save(f"images/{i}.png")
    for place in (["--model_dir=runs/whole", "--devices=cpu"], ["--export_dir=runs/whole/export"]):
        tried.run("predict", *place, "--input=images", "--output=predictions.csv")
        lines = Path("predictions.csv").read_text().splitlines()[1:]
        labels = [int(line.split(",")[1]) for line in lines]
        assert labels == predicted.argmax(axis=1).tolist()
