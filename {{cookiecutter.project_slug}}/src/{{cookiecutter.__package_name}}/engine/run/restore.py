"""Opens a run: sets a model to one of its checkpoints."""

from pathlib import Path
from typing import Any

from ...vocab import vocab
from ..errors import UserError
from .checkpoints import BEST, NEWEST, Saver, steps_in
from .state import State
from .variables import optimizers_of, variables_of


def restore_run(
    model_dir: str,
    model: Any,
    *,
    best: bool = False,
    averages: bool = True,
    optimizer: bool = False,
) -> State:
    """Sets a model's network and step to the newest, or the best, checkpoint of a run.

    Args:
        model_dir: the folder of the run.
        model: see ``protocols.Model``.
        best: take the best checkpoint by validation error.
        averages: take the moving averages of the variables, if the run kept any (``--ema_momentum``).
        optimizer: set the optimizer's state too; without it the optimizer may be another.

    Returns:
        The state that was saved with it.

    Raises:
        UserError: the run has no such checkpoint, or it belongs to another model.
    """
    folder = Path(model_dir) / (BEST if best else NEWEST)
    variables = variables_of(model, optimizer=optimizer)
    ignored = [vocab.state, *([] if optimizer else [*optimizers_of(model), vocab.average])]
    saver = Saver(folder, variables, ignored=ignored, averages=averages)
    state = saver.restore()
    if best and state is not None:  # the newest of the best need not be the best of all
        on_disk = steps_in(folder)
        state = saver.restore([step for _, step in state.best if step in on_disk])
    if state is None:
        raise UserError(f"--model_dir={model_dir}: no checkpoint in {folder}; train first")
    return state
