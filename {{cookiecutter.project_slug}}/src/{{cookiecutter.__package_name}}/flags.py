"""Every hyper-parameter and setting: a flag with bounds, a default and a sentence that says when to turn it.

Flags are defined here and in ``task_flags.py``, and only ``run.py`` and entry points read them; everything else takes
the small option objects that are made here. No TensorFlow is imported, so that ``--help`` answers at once.
"""

import math
import re

from absl import flags

from . import task_flags
from .engine import options

# A default stands once: with the options that the engine takes.
_PLACEMENT, _UPDATE, _LOOP = (
    options.PlacementOptions(),
    options.OptimizerOptions(),
    options.LoopOptions(),
)
_DEVICES = r"auto|cpu(:[1-9]\d*)?|gpu(:\d+(,\d+)*)?"


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _is_multiplier(text: str) -> bool:
    pattern, _, value = text.rpartition("=")
    try:
        return bool(pattern) and _is_pattern(pattern) and 0 < float(value) < math.inf
    except ValueError:
        return False


def _is_one_line(text: str) -> bool:
    return text.splitlines() == [text] and text == text.encode(errors="ignore").decode()


DATA_DIR = flags.DEFINE_string(
    "data_dir", "data", "Folder with the TFRecord shards and dataset.json that `prepare` wrote."
)
MODEL_DIR = flags.DEFINE_string(
    "model_dir", "runs/baseline", "Folder of the run: checkpoints, event files, flags.txt."
)
SEED = flags.DEFINE_integer(
    "seed",
    0,
    "Decides every random draw: split, initial weights, order of examples, augmentation, dropout.",
    lower_bound=0,
    upper_bound=2**31 - 1,
)
DEVICES = flags.DEFINE_string(
    "devices",
    _PLACEMENT.devices,
    "Where to run: `auto` (all GPUs, else the CPU), `cpu`, `cpu:4` (four virtual devices, to try "
    "out many on one machine), `gpu` (all), `gpu:0,2` (those two).",
)
flags.register_validator(
    "devices",
    lambda value: re.fullmatch(_DEVICES, value) is not None,
    message="must be auto, cpu, cpu:<count>, gpu or gpu:<index>,<index>...",
)
LOG_DEVICE_PLACEMENT = flags.DEFINE_bool(
    "log_device_placement",
    _PLACEMENT.log_device_placement,
    "Log the device that each operation was placed on.",
)

CHECK_NUMERICS = flags.DEFINE_bool(
    "check_numerics",
    _PLACEMENT.check_numerics,
    "Name the operation that first produces a NaN or Inf; a step takes about 1.5 times as long.",
)
PRECISION = flags.DEFINE_enum(
    "precision",
    _PLACEMENT.precision,
    options.PRECISIONS,
    "Data type that layers compute in; bfloat16 is faster where the hardware supports it, and weights stay float32.",
)
CLUSTER = flags.DEFINE_enum(
    "cluster",
    options.CLUSTERS[0],
    options.CLUSTERS,
    "Which processes train together: `none` this one alone, `tf_config` or `slurm` the workers that those "
    "environment variables name, `auto` whichever of the two is set.",
)
CLUSTER_TIMEOUT = flags.DEFINE_float(
    "cluster_timeout",
    60.0,
    "Seconds after which a worker that has not arrived, or is silent, counts as dead and ends the others.",
    lower_bound=1.0,
)

# prepare
SHARDS = flags.DEFINE_integer(
    "shards",
    4,
    "Number of files that the training split is written to.",
    lower_bound=1,
    upper_bound=99_999,
)
VALIDATION_FRACTION = flags.DEFINE_float(
    "validation_fraction",
    0.15,
    "Share of the examples that decides which checkpoint is best.",
    lower_bound=0.001,
    upper_bound=0.5,
)
TEST_FRACTION = flags.DEFINE_float(
    "test_fraction",
    0.15,
    "Share of the examples that training never sees, for the final metrics.",
    lower_bound=0.001,
    upper_bound=0.5,
)
OVERWRITE = flags.DEFINE_bool("overwrite", False, "Replace another data set in --data_dir.")

# The model and its input
DROPOUT_RATE = flags.DEFINE_float(
    "dropout_rate",
    0.3,
    "Share of activations dropped in training; higher when validation error is far above training error.",
    lower_bound=0.0,
    upper_bound=0.99,
)
BATCH_SIZE = flags.DEFINE_integer(
    "batch_size",
    64,
    "Examples in a step over all devices together; a multiple of their number.",
    lower_bound=1,
    upper_bound=1_000_000,
)
ACCUMULATE_STEPS = flags.DEFINE_integer(
    "accumulate_steps",
    _UPDATE.accumulate_steps,
    "Compute the gradients of a batch in this many parts, one after the other, when it does not fit into "
    "memory at once; batch normalisation sees one part at a time.",
    lower_bound=1,
    upper_bound=1_000,
)
CLASS_WEIGHTS = flags.DEFINE_bool(
    "class_weights",
    False,
    "Let the examples of rare classes count more in the training loss, so that all classes count alike.",
)
IN_MEMORY_MB = flags.DEFINE_integer(
    "in_memory_mb",
    options.DEFAULT_IN_MEMORY_MB,
    "Keep a split in memory if its decoded examples take at most so many megabytes; a larger one is read "
    "from its shards all the time.",
    lower_bound=0,
)
LIMIT_EXAMPLES = flags.DEFINE_integer(
    "limit_examples",
    None,
    "Train on this many examples only: one batch to see that the model can overfit, a few to debug.",
    lower_bound=1,
)

# Training
TRAIN_STEPS = flags.DEFINE_integer(
    "train_steps",
    None,
    "Step at which training ends, counted from the first start of the run; "
    f"{options.DEFAULT_TRAIN_STEPS} when --epochs is not given either.",
    lower_bound=1,
)
EPOCHS = flags.DEFINE_float(
    "epochs",
    None,
    "The same end, in passes over the training split.",
    lower_bound=0.001,
)
flags.mark_flags_as_mutual_exclusive(["train_steps", "epochs"])
STEPS_PER_LOOP = flags.DEFINE_integer(
    "steps_per_loop",
    _LOOP.steps_per_loop,
    "The most steps that run in the graph before the host gets control again, which it does about once a "
    "second anyway; higher delays the reaction to signals, lower costs throughput.",
    lower_bound=1,
    upper_bound=100_000,
)
DETERMINISTIC = flags.DEFINE_bool(
    "deterministic",
    _PLACEMENT.deterministic,
    "Use only operations that repeat their results bit for bit on GPUs, at some cost in speed; on "
    "CPUs runs repeat without it.",
)
OPTIMIZER = flags.DEFINE_enum(
    "optimizer",
    _UPDATE.name,
    sorted(options.OPTIMIZERS),
    "Update rule; adam, adamw, rmsprop and lion want a learning rate about a hundred times smaller than sgd.",
)
LEARNING_RATE = flags.DEFINE_float(
    "learning_rate",
    _UPDATE.learning_rate,
    "Step size of the optimizer, the highest that the schedule reaches; the first thing to tune.",
    lower_bound=0.0,
)
LEARNING_RATE_SCHEDULE = flags.DEFINE_enum(
    "learning_rate_schedule",
    _UPDATE.schedule,
    sorted(options.SCHEDULES),
    "How the learning rate changes from the end of the warm-up to the end of training.",
)
WARMUP_STEPS = flags.DEFINE_integer(
    "warmup_steps",
    _UPDATE.warmup_steps,
    "Steps over which the learning rate rises linearly from zero.",
    lower_bound=0,
)
MOMENTUM = flags.DEFINE_float(
    "momentum",
    _UPDATE.momentum,
    "Decay of the moving average of gradients, for --optimizer=momentum and nesterov.",
    lower_bound=0.0,
    upper_bound=0.9999,
)
WEIGHT_DECAY = flags.DEFINE_float(
    "weight_decay",
    _UPDATE.weight_decay,
    "Share of each weight, times the learning rate, that a step takes away; biases and normalisations "
    "are left out. adamw without it is adam.",
    lower_bound=0.0,
    upper_bound=10.0,
)
EMA_MOMENTUM = flags.DEFINE_float(
    "ema_momentum",
    _UPDATE.ema_momentum,
    "Decay of an exponential moving average (EMA) of the weights, which is evaluated in their place (0.999 "
    "averages about the last thousand steps); 0 keeps none.",
    lower_bound=0.0,
    upper_bound=0.999999,
)
LEARNING_RATE_MULTIPLIERS = flags.DEFINE_multi_string(
    "learning_rate_multipliers",
    [],
    "Scale the updates of the variables whose whole path matches, as pattern=number (`conv_.*=0.1`), with "
    "any optimizer; may be repeated, and the last that matches counts.",
)
flags.register_validator(
    "learning_rate_multipliers",
    lambda values: all(map(_is_multiplier, values)),
    message="must be pattern=number, a regular expression and a number above 0",
)
GRADIENT_MULTIPLIERS = flags.DEFINE_multi_string(
    "gradient_multipliers",
    [],
    "Scale the gradients of the variables whose whole path matches, likewise, before they are clipped; for "
    "sgd, momentum and nesterov, as the updates of the others do not depend on it.",
)
flags.register_validator(
    "gradient_multipliers",
    lambda values: all(map(_is_multiplier, values)),
    message="must be pattern=number, a regular expression and a number above 0",
)
CLIP_NORM = flags.DEFINE_float(
    "clip_norm",
    _UPDATE.clip_norm,
    "Scale the gradients down to this global norm when they exceed it, after they are summed over "
    "devices; 0 never.",
    lower_bound=0.0,
)

CLIP_VARIABLE_NORM = flags.DEFINE_float(
    "clip_variable_norm",
    _UPDATE.clip_variable_norm,
    "Scale the gradient of each variable down to this norm when it exceeds it; 0 never.",
    lower_bound=0.0,
)
CLIP_VALUE = flags.DEFINE_float(
    "clip_value",
    _UPDATE.clip_value,
    "Clip each value of the gradients to between this and its negative; 0 never.",
    lower_bound=0.0,
)

# Checkpoints, summaries, evaluation during training
CHECKPOINT_EVERY = flags.DEFINE_integer(
    "checkpoint_every",
    _LOOP.checkpoint_every,
    "Save on every multiple of this many steps, and at the end.",
    lower_bound=1,
)
CHECKPOINT_SECONDS = flags.DEFINE_float(
    "checkpoint_seconds",
    _LOOP.checkpoint_seconds,
    "Save also when the last checkpoint is this old: the most work, in seconds, that a crash costs.",
    lower_bound=0.001,
)
KEEP_CHECKPOINTS = flags.DEFINE_integer(
    "keep_checkpoints",
    _LOOP.keep_checkpoints,
    "Number of newest checkpoints to keep.",
    lower_bound=1,
)
KEEP_BEST = flags.DEFINE_integer(
    "keep_best",
    _LOOP.keep_best,
    "Number of best checkpoints to keep, by validation error.",
    lower_bound=1,
)
SUMMARY_EVERY = flags.DEFINE_integer(
    "summary_every",
    _LOOP.summary_every,
    "Write the curves of training on every multiple of this many steps.",
    lower_bound=1,
)
SUMMARIZE_GRADIENTS = flags.DEFINE_bool(
    "summarize_gradients",
    _LOOP.summarize_gradients,
    "Write histograms of all weights and gradients, and each gradient's norm, whenever curves are written.",
)
EVALUATE_EVERY = flags.DEFINE_integer(
    "evaluate_every",
    _LOOP.evaluate_every,
    "Evaluate the validation split on every multiple of this many steps, and at the end.",
    lower_bound=1,
)
PROFILE_STEPS = flags.DEFINE_list(
    "profile_steps",
    [],
    "Profile the steps after the first of these two up to the second: 100,110; some steps after the "
    "start, since the first ones also build the graph.",
)
flags.register_validator(
    "profile_steps",
    lambda value: (
        not value
        or (
            len(value) == 2
            and all(re.fullmatch(r"[1-9]\d{0,14}", step) for step in value)
            and int(value[0]) < int(value[1])
        )
    ),
    message="must be two whole numbers above 0, the smaller first: --profile_steps=100,110",
)
EARLY_STOP_PATIENCE = flags.DEFINE_integer(
    "early_stop_patience",
    _LOOP.early_stop_patience,
    "End training after this many evaluations in a row without a new best; 0 never.",
    lower_bound=0,
)
CONTINUE_ON_NEW_DATA = flags.DEFINE_bool(
    "continue_on_new_data",
    _LOOP.continue_on_new_data,
    "Continue from the weights, optimizer and step of a run on other data, seed or batch size, read from "
    "its beginning; without it such a run is refused, since it would be neither the old nor a new one.",
)

# Starting from another run's weights
WARM_START_FROM = flags.DEFINE_string(
    "warm_start_from",
    None,
    "Start from the weights of this run, checkpoint (`.../ckpt-500`), export (`.../export/1`) or file "
    "(.weights.h5, .keras, .npz); a run that has a checkpoint of its own continues from that.",
)
WARM_START_INCLUDE = flags.DEFINE_multi_string(
    "warm_start_include",
    [],
    "Take only variables whose whole path matches this regular expression; may be repeated.",
)
WARM_START_EXCLUDE = flags.DEFINE_multi_string(
    "warm_start_exclude",
    [],
    "Leave out variables whose whole path matches this regular expression; may be repeated.",
)
WARM_START_MAP = flags.DEFINE_multi_string(
    "warm_start_map",
    [],
    "Another name in the checkpoint, as old=new: a variable (`old/kernel=new/kernel`) or a whole "
    "layer (`old=new`); may be repeated.",
)
TRAINABLE = flags.DEFINE_string(
    "trainable",
    "",
    "Train only variables whose whole path matches this regular expression (`logits/.*`); empty "
    "trains all. A layer with variables of which none is trained runs as in inference.",
)
for _name in ("warm_start_include", "warm_start_exclude"):
    flags.register_validator(
        _name,
        lambda values: all(map(_is_pattern, values)),
        message="must be regular expressions",
    )
flags.register_validator("trainable", _is_pattern, message="must be a regular expression")
flags.register_multi_flags_validator(
    ["warm_start_from", "warm_start_include", "warm_start_exclude", "warm_start_map"],
    lambda values: values["warm_start_from"] is not None or not any(values.values()),
    message="--warm_start_include, --warm_start_exclude and --warm_start_map need --warm_start_from",
)
flags.register_validator(
    "warm_start_map",
    lambda values: (
        all(re.fullmatch(r"[^=]+=[^=]+", value) for value in values)
        and len({value.partition("=")[0] for value in values}) == len(values)
    ),
    message="must be old=new, each old once",
)

# evaluate, export, predict
SPLIT = flags.DEFINE_enum(
    "split",
    options.SPLITS[1],
    options.SPLITS,
    "Split to evaluate; `test` is for the final metrics, not for choosing settings.",
)
CHECKPOINT = flags.DEFINE_enum(
    "checkpoint",
    options.CHECKPOINTS[0],
    options.CHECKPOINTS,
    "Which checkpoint of the run to take; best is by validation error.",
)
AVERAGES = flags.DEFINE_bool(
    "averages",
    False,
    "Export the moving averages of the variables (--ema_momentum), as they are evaluated, in place of the "
    "values that training continues from.",
)
COMPARE = flags.DEFINE_multi_string(
    "compare",
    [],
    "Show the metrics of this run, evaluated before on the same split, in the same table; may be repeated.",
)

# predict
INPUT = flags.DEFINE_multi_string(
    "input",
    [],
    "What to predict: a file, a folder with all in it, a pattern (`photos/*.png`) or a .csv; may be "
    "repeated.",
)
OUTPUT = flags.DEFINE_string(
    "output",
    "predictions.csv",
    "File to write the predictions to: a table (.csv) or a line of JSON for each (.jsonl).",
)
STRICT = flags.DEFINE_bool(
    "strict", False, "End with an error at the first input that cannot be read, and write nothing."
)
EXPORT_DIR = flags.DEFINE_string(
    "export_dir",
    None,
    "Predict with this export (`.../export/1`, or `.../export` for the newest) in place of a checkpoint "
    "of --model_dir.",
)
flags.register_validator(
    "output",
    lambda value: value.endswith((".csv", ".jsonl")),
    message="must end in .csv or .jsonl",
)

# A shell variable that is not set must not make the current folder the place to write to, or a warm start none.
# flags.txt takes one line of UTF-8 for each flag.
for _name in ("data_dir", "model_dir", "source", "warm_start_from", "output", "export_dir"):
    flags.register_validator(
        _name,
        lambda value: value is None or _is_one_line(value),
        message="must not be empty, and be one line of plain text",
    )

# Not a number (nan) passes any bound, no setting here means anything when infinite, and numbers end up in
# TensorFlow's float32 and int64.
_DEFINED = [
    flag
    for module in (__name__, task_flags.__name__)
    for flag in flags.FLAGS.flags_by_module_dict()[module]
]
for _parser, _largest in ((flags.FloatParser, 3e38), (flags.IntegerParser, 10**15)):
    for _flag in _DEFINED:
        if isinstance(_flag.parser, _parser):
            flags.register_validator(
                _flag.name,
                lambda value, largest=_largest: (
                    value is None or (math.isfinite(value) and value <= largest)
                ),
                message=f"must be a finite number of at most {_largest:g}",
            )

# What belongs to which command: `--help` lists these, and any other is refused.
PREPARE = (
    *task_flags.PREPARE,
    DATA_DIR,
    SEED,
    SHARDS,
    VALIDATION_FRACTION,
    TEST_FRACTION,
    OVERWRITE,
)
_PLACE = (DEVICES, PRECISION, LOG_DEVICE_PLACEMENT)
TRAIN = (
    *(
        DATA_DIR,
        MODEL_DIR,
        *task_flags.TRAIN,
        DROPOUT_RATE,
        BATCH_SIZE,
        ACCUMULATE_STEPS,
        IN_MEMORY_MB,
        LIMIT_EXAMPLES,
    ),
    *(TRAIN_STEPS, EPOCHS, STEPS_PER_LOOP, SEED, DETERMINISTIC, CLASS_WEIGHTS),
    *(OPTIMIZER, LEARNING_RATE, LEARNING_RATE_SCHEDULE, WARMUP_STEPS, MOMENTUM, WEIGHT_DECAY),
    *(EMA_MOMENTUM, LEARNING_RATE_MULTIPLIERS, GRADIENT_MULTIPLIERS),
    *(CLIP_NORM, CLIP_VARIABLE_NORM, CLIP_VALUE),
    *(CHECKPOINT_EVERY, CHECKPOINT_SECONDS, KEEP_CHECKPOINTS, KEEP_BEST),
    *(SUMMARY_EVERY, SUMMARIZE_GRADIENTS, EVALUATE_EVERY, EARLY_STOP_PATIENCE),
    *(CONTINUE_ON_NEW_DATA, PROFILE_STEPS),
    *(WARM_START_FROM, WARM_START_INCLUDE, WARM_START_EXCLUDE, WARM_START_MAP, TRAINABLE),
    *(*_PLACE, CHECK_NUMERICS, CLUSTER, CLUSTER_TIMEOUT),
)
EVALUATE = (MODEL_DIR, DATA_DIR, SPLIT, CHECKPOINT, COMPARE, BATCH_SIZE, *_PLACE)
EXPORT = (MODEL_DIR, DATA_DIR, CHECKPOINT, AVERAGES)
PREDICT = (
    *(INPUT, OUTPUT, STRICT, EXPORT_DIR, MODEL_DIR, DATA_DIR, CHECKPOINT, BATCH_SIZE),
    *_PLACE,
)
# A flag of your own is a flag of `train`, and an argument of your model if it has its name: no list names it.
_LISTED = {flag.name for own in (PREPARE, TRAIN, EVALUATE, EXPORT, PREDICT) for flag in own}
TRAIN += tuple(  # type: ignore[assignment]
    flag
    for flag in (*vars(task_flags).values(), *list(globals().values()))
    if isinstance(flag, flags.FlagHolder) and flag.name not in _LISTED
)
MODEL = (DROPOUT_RATE, CLASS_WEIGHTS)


def train_steps(examples: int) -> int:
    """Returns the step at which training on ``examples`` examples ends."""
    if EPOCHS.value is not None:
        return max(1, round(EPOCHS.value * examples / BATCH_SIZE.value))
    return TRAIN_STEPS.value or options.DEFAULT_TRAIN_STEPS


def placement_options() -> options.PlacementOptions:
    """Returns where to run."""
    return options.PlacementOptions(
        devices=DEVICES.value,
        precision=PRECISION.value,
        check_numerics=CHECK_NUMERICS.value,
        log_device_placement=LOG_DEVICE_PLACEMENT.value,
        deterministic=DETERMINISTIC.value,
    )


def optimizer_options(train_steps: int) -> options.OptimizerOptions:
    """Returns how gradients become updates, in a training of ``train_steps`` steps."""
    return options.OptimizerOptions(
        name=OPTIMIZER.value,
        learning_rate=LEARNING_RATE.value,
        schedule=LEARNING_RATE_SCHEDULE.value,
        warmup_steps=WARMUP_STEPS.value,
        train_steps=train_steps,
        momentum=MOMENTUM.value,
        weight_decay=WEIGHT_DECAY.value,
        ema_momentum=EMA_MOMENTUM.value,
        learning_rate_multipliers=_multipliers(LEARNING_RATE_MULTIPLIERS.value),
        gradient_multipliers=_multipliers(GRADIENT_MULTIPLIERS.value),
        clip_norm=CLIP_NORM.value,
        clip_variable_norm=CLIP_VARIABLE_NORM.value,
        clip_value=CLIP_VALUE.value,
        accumulate_steps=ACCUMULATE_STEPS.value,
        report_gradients=SUMMARIZE_GRADIENTS.value,
    )


def _multipliers(entries: list[str]) -> tuple[tuple[str, float], ...]:
    return tuple((p, float(value)) for p, _, value in (entry.rpartition("=") for entry in entries))


def loop_options(train_steps: int) -> options.LoopOptions:
    """Returns what happens when, in a training of ``train_steps`` steps."""
    return options.LoopOptions(
        train_steps=train_steps,
        steps_per_loop=STEPS_PER_LOOP.value,
        checkpoint_every=CHECKPOINT_EVERY.value,
        checkpoint_seconds=CHECKPOINT_SECONDS.value,
        keep_checkpoints=KEEP_CHECKPOINTS.value,
        keep_best=KEEP_BEST.value,
        summary_every=SUMMARY_EVERY.value,
        evaluate_every=EVALUATE_EVERY.value,
        early_stop_patience=EARLY_STOP_PATIENCE.value,
        summarize_gradients=SUMMARIZE_GRADIENTS.value,
        continue_on_new_data=CONTINUE_ON_NEW_DATA.value,
        profile_steps=tuple(map(int, PROFILE_STEPS.value)),
    )
