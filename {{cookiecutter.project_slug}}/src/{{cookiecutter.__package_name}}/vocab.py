"""The names of this project, each spelled in one place.

A name is used wherever something can be found again: operations, SavedModel functions with their inputs and
outputs, event-file tags, metric keys, checkpoint keys and the features of a record. Write ``vocab.loss``,
never ``"loss"``. What exists once for each variable is a name followed by the variable's path, made by
``per_variable``: ``gradient_norm/conv_1/kernel``.
"""

from typing import NamedTuple


class Vocabulary(NamedTuple):
    """Every name, with what it stands for."""

    x: str = "x"
    """Input of the model, one row an example; also the record's feature."""

    y: str = "y"
    """Target that the model learns to predict; also the record's feature."""

    weight: str = "weight"
    """Weight of an example in evaluation: 1, or 0 for the padding of the last batch."""

    inference: str = "inference"
    """What the model predicts from ``x``."""

    logits: str = "logits"
    """Scores of the classes, from which ``inference`` makes probabilities."""

    label: str = "label"
    """Name of the class that is predicted."""

    input: str = "input"
    """Where an example to predict came from: a file, or a file and a line in it."""

    loss: str = "loss"
    """The training objective: a mean over examples, regularisation included."""

    error: str = "error"
    """Share of examples predicted wrong, or the RMSE; on the validation split it decides which checkpoint is best."""

    accuracy: str = "accuracy"
    """Share of examples predicted right."""

    confusion: str = "confusion"
    """Counts ``[true class, predicted class]``."""

    precision: str = "precision"
    """Share that is right of the examples predicted as a class."""

    recall: str = "recall"
    """Share of the examples of a class that are predicted as it."""

    f1: str = "f1"
    """Harmonic mean of precision and recall of a class."""

    roc_auc: str = "roc_auc"
    """Area under the ROC curve: how often a positive example has a higher score than a negative one."""

    pr_auc: str = "pr_auc"
    """Area under the curve of precision over recall: the average precision."""

    rmse: str = "rmse"
    """Root of the mean squared error, in the units of the target."""

    mae: str = "mae"
    """Mean absolute error, in the units of the target."""

    r2: str = "r2"
    """Share of the target's variance that the model explains."""

    examples: str = "examples"
    """Number of examples that the metrics were computed from."""

    mistakes: str = "mistakes"
    """The examples of a split with the largest losses."""

    optimize: str = "optimize"
    """One training step."""

    optimizer: str = "optimizer"
    """The optimizer's own state, such as momentum."""

    learning_rate: str = "learning_rate"
    """The learning rate that a step used."""

    gradient_norm: str = "gradient_norm"
    """Global norm of the gradients, reduced over replicas, before clipping."""

    gradient: str = "gradient"
    """Gradient of a variable, reduced over replicas, before clipping."""

    average: str = "average"
    """Moving average of a variable."""

    global_step: str = "global_step"
    """Number of training steps taken since the first start of the run."""

    variables: str = "variables"
    """Everything in an export that training changes, by the keys of a checkpoint."""

    state: str = "state"
    """What a run knows beside its variables; see ``engine/run/state.py``."""

    examples_per_second: str = "examples_per_second"
    """Training throughput over all replicas."""

    input_wait: str = "input_wait"
    """Seconds that a step waits for its batch: about 0 if that was ready before."""


vocab = Vocabulary()


def per_variable(name: str, path: str) -> str:
    """Returns the name of what ``name`` stands for, of one variable: ``gradient_norm/conv_1/kernel``."""
    return f"{name}/{path}"
