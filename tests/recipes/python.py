"""The script opens the better of its runs; a function and the command end with the same bits."""

from typing import Any


def check(tried: Any) -> None:
    """Train the same run by the function."""
    if tried.devices != "cpu":
        return
    outcome = tried.module("train").train(
        model_dir="runs/called",
        devices="cpu",
        train_steps=20,
        checkpoint_every=10,
        summary_every=5,
        evaluate_every=10,
        learning_rate_schedule="constant",
        warmup_steps=0,
    )
    assert outcome.global_step == 20
    called, whole = tried.variables("runs/called"), tried.variables("runs/whole")
    for key, value in whole.items():
        assert key == "state" or value.tobytes() == called[key].tobytes(), key
