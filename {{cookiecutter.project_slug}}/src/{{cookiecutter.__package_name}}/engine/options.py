"""The options that the engine's functions take: small, frozen, made from flags by ``flags.py``."""

import dataclasses

DEFAULT_TRAIN_STEPS = 2_000
DEFAULT_IN_MEMORY_MB = 1_024
OPTIMIZERS = {
    **dict.fromkeys(("sgd", "momentum", "nesterov"), "SGD"),
    **{"rmsprop": "RMSprop", "adam": "Adam", "adamw": "AdamW", "lion": "Lion"},
}
"""Class in ``keras.optimizers`` by name."""

SCHEDULES = ("constant", "cosine", "exponential", "piecewise")
PRECISIONS = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
"""Keras's dtype policy by name."""

CLUSTERS = ("auto", "none", "tf_config", "slurm")
SPLITS = ("train", "validation", "test")
CHECKPOINTS = ("newest", "best")


@dataclasses.dataclass(frozen=True)
class PlacementOptions:
    """Where to run; see the flags of the same names."""

    devices: str = "auto"
    precision: str = "float32"
    log_device_placement: bool = False
    check_numerics: bool = False
    deterministic: bool = False


@dataclasses.dataclass(frozen=True)
class OptimizerOptions:
    """How gradients become updates; see the flags of the same names."""

    name: str = "momentum"
    learning_rate: float = 0.05
    schedule: str = "cosine"
    warmup_steps: int = 100
    train_steps: int = DEFAULT_TRAIN_STEPS
    momentum: float = 0.9
    weight_decay: float = 0.0
    ema_momentum: float = 0.0
    gradient_multipliers: tuple[tuple[str, float], ...] = ()
    """(pattern for variables' paths, multiplier)"""
    learning_rate_multipliers: tuple[tuple[str, float], ...] = ()
    """(pattern for variables' paths, multiplier)"""

    clip_norm: float = 5.0
    clip_variable_norm: float = 0.0
    clip_value: float = 0.0
    accumulate_steps: int = 1
    report_gradients: bool = False


@dataclasses.dataclass(frozen=True)
class LoopOptions:
    """How long to train, and what happens when; see the flags of the same names."""

    train_steps: int = DEFAULT_TRAIN_STEPS
    steps_per_loop: int = 100
    checkpoint_every: int = 500
    checkpoint_seconds: float = 600.0
    keep_checkpoints: int = 3
    keep_best: int = 1
    summary_every: int = 50
    evaluate_every: int = 100
    early_stop_patience: int = 0
    summarize_gradients: bool = False
    continue_on_new_data: bool = False
    profile_steps: tuple[int, ...] = ()
