"""Saves and restores the checkpoints in a folder, beside training.

A thread writes while training goes on: what it writes are snapshots that cost no copy, since TensorFlow
gives a variable a new buffer when its old one is still in use.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from ...vocab import vocab
from ..errors import UserError
from . import checkpoints
from .checkpoints import BEST, NEWEST, steps_in, variables_of
from .state import State


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
        model: has ``network`` and ``optimizer``.
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
    ignored = [vocab.state, *([] if optimizer else [vocab.optimizer, vocab.average])]
    saver = Saver(folder, variables, ignored=ignored, averages=averages)
    state = saver.restore()
    if best and state is not None:  # the newest of the best need not be the best of all
        on_disk = steps_in(folder)
        state = saver.restore([step for _, step in state.best if step in on_disk])
    if state is None:
        raise UserError(f"--model_dir={model_dir}: no checkpoint in {folder}; train first")
    return state


def save_variables(
    path: str | Path, variables: Mapping[str, tf.Variable], *, include: str = ".*"
) -> list[str]:
    """Writes a checkpoint of some variables at once, for ``--warm_start_from`` or another program.

    Args:
        path: of the checkpoint, without the ending: ``backbone/ckpt-0``.
        variables: by key, as ``checkpoints.variables_of`` returns them.
        include: regular expression for the whole keys to save.

    Returns:
        The keys that were saved.

    Raises:
        UserError: no key matches.
    """
    chosen = {k: v for k, v in variables.items() if re.fullmatch(include, k)}
    if not chosen:
        raise UserError(f"{include!r} matches none of {', '.join(variables)}")
    checkpoints.write(Path(path), checkpoints.snapshot(chosen))
    return list(chosen)


class Saver:
    """Writes and reads the checkpoints in one folder."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, tf.Variable],
        *,
        ignored: Sequence[str] = (vocab.state,),
        averages: bool = False,
        writes: bool = True,
    ) -> None:
        """Makes a saver.

        Args:
            folder: where the checkpoints are.
            variables: by the keys that they have in a checkpoint.
            ignored: first parts of keys that a checkpoint may have beside those of ``variables``.
            averages: restore a variable's moving average, where there is one, in its place.
            writes: whether this process saves; of several that train together, one does.
        """
        self.folder = folder
        self._ignored = ignored
        self._averages = averages
        self._writes = writes
        self._variables = variables
        self._read = tf.function(lambda: checkpoints.snapshot(variables))
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._written: Future[None] | None = None

    def save(
        self, step: int, state: State, keep: Sequence[int] | int, *, after: "Saver | None" = None
    ) -> None:
        """Saves the variables as they are now, in a thread; ``wait`` returns when it is written.

        Args:
            step: names the checkpoint.
            state: what goes with the variables.
            keep: after it is written, the steps to keep, or how many of the newest.
            after: a saver whose last save has to be on disk before this one; if that one fails, so does this.

        Raises:
            UserError: the save before could not be written.
        """
        self.wait()
        if not self._writes:
            return
        tensors = {vocab.state: tf.constant(state.to_json()), **self._read()}
        before = after._written if after else None
        self._written = self._writer.submit(self._write, step, tensors, keep, before)

    def wait(self) -> None:
        """Waits until what was saved is on disk.

        Raises:
            UserError: it could not be written.
        """
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def check(self) -> None:
        """Tells whether what was saved could be written, as soon as that is known; does not wait.

        Raises:
            UserError: it could not.
        """
        if self._written is not None and self._written.done():
            self.wait()

    def restore(self, steps: Sequence[int] | None = None) -> State | None:
        """Sets the variables to those of the first checkpoint that can be read.

        Args:
            steps: in the order to try them; without it all, the newest first.

        Returns:
            The state that was saved with them; None if there is no checkpoint to try.

        Raises:
            UserError: no checkpoint can be read, or it belongs to another model.
        """
        unreadable = []
        for step in reversed(steps_in(self.folder)) if steps is None else steps:
            try:
                values = checkpoints.read(self.folder / f"ckpt-{step}")
                state = State.from_json(values[vocab.state])
            except (tf.errors.OpError, ValueError, LookupError, TypeError) as error:
                unreadable.append(f"ckpt-{step}: {_first_line(error)}")
                logging.warning(
                    "%s is left out: unreadable checkpoint %s", self.folder, unreadable[-1]
                )
                continue
            self._assign(values, f"{self.folder}/ckpt-{step}")
            return state
        if unreadable:
            raise UserError(
                f"{self.folder}: no checkpoint can be read; {'; '.join(unreadable)}. Nothing was "
                "deleted; start anew in another --model_dir"
            )
        return None

    def _assign(self, values: Mapping[str, np.ndarray], origin: str) -> None:
        problems = []
        for key, variable in self._variables.items():
            if key not in values:
                problems.append(f"{key} is missing")
            elif tuple(variable.shape) != values[key].shape:
                problems.append(f"{key} is {list(values[key].shape)}, now {list(variable.shape)}")
        for key in sorted(values.keys() - self._variables.keys()):
            if key.partition("/")[0] not in self._ignored:
                problems.append(f"{key} is not in this model")
        if problems:
            raise UserError(
                f"{origin} belongs to another model ({'; '.join(problems[:5])}"
                f"{'; ...' if len(problems) > 5 else ''}); use another --model_dir, with "
                "--warm_start_from to take over what fits"
            )
        for key, variable in self._variables.items():
            average = key.replace(vocab.inference, vocab.average, 1) if self._averages else key
            variable.assign(values.get(average, values[key]))

    def _write(
        self,
        step: int,
        tensors: Mapping[str, tf.Tensor],
        keep: Sequence[int] | int,
        before: Future[None] | None,
    ) -> None:
        if before is not None:
            before.result()
        bad = _nonfinite(tensors)
        if bad is not None:
            raise UserError(
                f"step {step}: {bad} holds NaN or Inf and was not saved; run again from the last "
                "checkpoint with a lower --learning_rate or --clip_norm"
            )
        try:
            checkpoints.write(self.folder / f"ckpt-{step}", tensors)
            self._delete_others(step, keep)
        except (tf.errors.OpError, OSError) as error:
            raise UserError(
                f"{self.folder}: ckpt-{step} could not be written ({_first_line(error)}); the ones "
                "before it are as they were: make room or give access and run the command again"
            ) from None

    def _delete_others(self, step: int, keep: Sequence[int] | int) -> None:
        steps = steps_in(self.folder)
        if isinstance(keep, int):
            # Later ones could not be read and will be written again: they must not push this one out.
            steps = [s for s in steps if s <= step]
            kept: Sequence[int] = steps[-keep:]
        else:
            kept = keep
        for other in set(steps) - set(kept):
            checkpoints.delete(self.folder, other)


def _nonfinite(tensors: Mapping[str, tf.Tensor]) -> str | None:
    for key, tensor in tensors.items():
        if tensor.dtype.is_floating and not np.isfinite(tensor.numpy()).all():
            return key
    return None


def _first_line(error: Exception) -> str:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"\{\{.*?\}\} | \[Op:\w+\]", "", text)  # TensorFlow's names of its own parts
