"""A run from its folder, and the model that flags describe: what commands, notebooks and scripts share.

    run = open_run("runs/baseline", checkpoint="best")
    run.model.inference(run.batch("test")["x"])
    run.history["validation"]["error"]

All commands build the model here: a flag of ``train`` that is called like an argument of ``Model`` is passed to it.
"""

# What needs TensorFlow is imported where it is used: --help does not wait for it.
from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import flags
from .engine import command, options
from .engine.errors import UserError
from .engine.system import startup

if TYPE_CHECKING:
    import tensorflow as tf

    from .engine.dataset import Dataset
    from .engine.examples import Batch, Examples
    from .engine.run.state import State
    from .model import Model

History = dict[str, dict[str, list[tuple[int, float]]]]
"""By split and by tag: (step, value) in rising order."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A trained run, its model set to one of its checkpoints."""

    folder: Path
    dataset: Dataset
    model: Model
    strategy: tf.distribute.Strategy
    state: State
    """What the run knew at this checkpoint beside its variables."""

    step: int
    """Number of training steps that the model has taken."""

    def examples(self, split: str, limit: int | None = None) -> Examples:
        """Returns the examples of a split, by random access."""
        from . import data

        return data.open_split(self.dataset, split, limit=limit)

    def batch(self, split: str = "train", count: int = 16) -> Batch:
        """Returns the first examples of a split, as the model takes them in evaluation."""
        import tensorflow as tf

        examples = self.examples(split, limit=count)
        return examples.fetch(tf.range(examples.examples, dtype=tf.int64))

    @property
    def history(self) -> History:
        """The curves of training and validation."""
        from .engine.run import events

        return {split: events.scalars(self.folder / split) for split in ("train", "validation")}


def open_run(model_dir: str, *, checkpoint: str = "newest", **settings: Any) -> Run:
    """Opens a run, with its own flags.

    Args:
        model_dir: the folder of the run.
        checkpoint: ``newest``, or ``best`` by validation error.
        settings: what should be other than in the run, named like the flags of ``train``: ``data_dir``, ...

    Raises:
        UserError: there is no such run, checkpoint or data, or a setting is wrong.
    """
    given = {"model_dir": model_dir, "checkpoint": checkpoint, **settings}
    with command.settings((*flags.TRAIN, flags.CHECKPOINT), given):
        return open_with_flags()


def open_with_flags(
    place: options.PlacementOptions | None = None,
    *,
    averages: bool = True,
    optimizer: bool = False,
) -> Run:
    """Opens the run of ``--model_dir`` with the flags of this command, and else its own.

    Args:
        place: where to run, other than the flags say.
        averages: take the moving averages of the variables, if the run kept any.
        optimizer: restore the state of the optimizer, too.
    """
    startup.import_tensorflow()
    from . import data
    from .engine.distribute import placement
    from .engine.run import restore, variables

    model_dir = flags.MODEL_DIR.value
    command.read_flags_of_run(model_dir)
    dataset = data.open_dataset(flags.DATA_DIR.value)
    strategy = placement.strategy(place or flags.placement_options())
    with strategy.scope():
        model = make_model(dataset)
        state = restore.restore_run(
            model_dir,
            model,
            best=flags.CHECKPOINT.value == "best",
            averages=averages,
            optimizer=optimizer,
        )
    step = int(variables.global_step_of(model).numpy())
    return Run(Path(model_dir), dataset, model, strategy, state, step)


def make_model(dataset: Dataset) -> Model:
    """Returns the model that the flags describe, in the current distribution strategy."""
    from .model import Model

    given = model_flags()
    if flags.OPTIMIZER.name in _arguments(Model):
        given[flags.OPTIMIZER.name] = flags.optimizer_options(train_steps(dataset))
    return Model.for_dataset(dataset, **given)


def model_flags() -> dict[str, Any]:
    """Returns the values of the flags that are arguments of the model.

    Raises:
        UserError: a flag is given that the model has no argument for.
    """
    from .model import Model

    arguments = _arguments(Model) - {flags.OPTIMIZER.name}  # an options object there
    for flag in flags.MODEL:
        if flag.name not in arguments and flag.value != flag.default:
            raise UserError(
                f"--{flag.name}: Model has no argument {flag.name!r}; leave the flag out"
            )
    return {flag.name: flag.value for flag in flags.TRAIN if flag.name in arguments}


def train_steps(dataset: Dataset) -> int:
    """Returns the step at which training on a data set ends, as the flags say."""
    examples = dataset.splits["train"].examples
    return flags.train_steps(min(examples, flags.LIMIT_EXAMPLES.value or examples))


def _arguments(model: type[Model]) -> set[str]:
    """Returns the names of what the model is made from."""
    return {*inspect.signature(model).parameters, *inspect.signature(model.for_dataset).parameters}
