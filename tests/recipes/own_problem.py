"""It learns to continue waves, and predicts those in a file."""

from pathlib import Path
from typing import Any

import numpy as np


def check(tried: Any) -> None:
    """Train for longer, then predict."""
    if tried.devices != "cpu":
        return
    longer = ("--train_steps=400", "--warmup_steps=50", "--learning_rate=0.01", "--devices=cpu")
    outcome = tried.run("train", "--model_dir=runs/long", *longer)
    assert outcome["validation_error"] < 0.2  # of values between -1 and 1
    waves = np.sin(0.5 * np.arange(17) + np.array([[0.1], [2.0]]))
    np.savetxt("series.csv", waves[:, :16], delimiter=",")
    place = ("--model_dir=runs/long", "--devices=cpu")
    tried.run("predict", *place, "--input=series.csv", "--output=predictions.csv")
    lines = Path("predictions.csv").read_text().splitlines()
    predicted = [float(line.rpartition(",")[2]) for line in lines[1:]]
    np.testing.assert_allclose(predicted, waves[:, 16], atol=0.4)
