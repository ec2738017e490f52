"""The wiring of a project: what a team leaves alone, and what updates of the template replace.

The modules that stand here are what a project's own files import:

    actions      what happens during training on which steps
    batches      batches by step: the global batch is a pure function of (data, seed, step)
    command      commands: flags, one-line errors, results
    dataset      a prepared data set, as ``dataset.json`` describes it
    errors       the error of a user's mistake
    examples     where examples come from, in training and to predict
    gradients    one training step
    layers       layers that are right on any number of devices
    metrics      metrics of a split
    optimizers   optimizers by name, or any of Keras
    options      the options that these functions take
    paths        the files that a person names
    random       random numbers by position in the global batch
    summaries    what TensorBoard shows
    trainable    which variables are trained

The folders hold what is behind them: ``data`` (records, shards, splits), ``distribute`` (devices, workers),
``run`` (the trainer and what a run saves), ``export`` and ``system`` (files, start-up).
"""

import importlib
from types import ModuleType

_MOVED = {
    **dict.fromkeys(("preparing", "records", "replacing", "splits"), "data"),
    **dict.fromkeys(("cluster", "peers", "placement"), "distribute"),
    **dict.fromkeys(("checkpoints", "manifest", "protocols", "warm_start"), "run"),
    **dict.fromkeys(("files", "lock", "startup"), "system"),
}


def __getattr__(name: str) -> ModuleType:
    """Finds a module where the last release had it, directly in ``engine``; goes with the next release."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f".{_MOVED[name]}.{name}", __name__)
