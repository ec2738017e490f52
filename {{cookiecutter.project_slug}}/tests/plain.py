"""Options for tests that compute a step by hand: nothing is done to the rate or to the gradients unless it is said."""

from typing import Any

from {{ cookiecutter.__package_name }}.engine.options import OptimizerOptions

_NOTHING: dict[str, Any] = {"schedule": "constant", "warmup_steps": 0, "clip_norm": 0.0}


def options(**given):
    return OptimizerOptions(**_NOTHING | given)
