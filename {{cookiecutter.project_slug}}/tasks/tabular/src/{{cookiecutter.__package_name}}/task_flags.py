"""The flags that only a project on tables has; ``flags.py`` adds them to its commands."""

from absl import flags

_KINDS = "number, buckets, category or ignore"

SOURCE = flags.DEFINE_string(
    "source",
    "iris",
    "`iris` (150 flowers of three species that come with scikit-learn), or a CSV file in UTF-8 whose "
    "first line names the columns.",
)
TARGET = flags.DEFINE_string(
    "target",
    None,
    "Column of the CSV file that the model learns to predict, as the first line names it.",
)
PROBLEM = flags.DEFINE_enum(
    "problem",
    None,
    ["classification", "regression"],
    "What to predict, a class or a number; without it, it is decided from the target column: numbers "
    "with decimals, or of more than 20 values, are a regression.",
)
COLUMNS = flags.DEFINE_multi_string(
    "columns",
    [],
    f"What a column is, where another kind than the one found is wanted, as name=kind: {_KINDS}; may "
    "be repeated.",
)
flags.register_validator(
    "columns",
    lambda values: all(name and kind for name, _, kind in (v.rpartition("=") for v in values)),
    message=f"must be name=kind: {_KINDS}",
)
AUGMENT = flags.DEFINE_bool(
    "augment",
    False,
    "Hide a tenth of the values of training examples at random, so that the model learns to do "
    "without; try it when validation error is far above training error or values will be missing.",
)

PREPARE = (SOURCE, TARGET, PROBLEM, COLUMNS)
TRAIN = (AUGMENT,)
