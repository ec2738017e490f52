"""Checkpoints of a run: named variables in TensorFlow's checkpoint format, never half, written beside training.

A checkpoint ``ckpt-<step>`` is two files. They are written in a folder of their own and renamed, the index
last: a checkpoint without an index does not exist, so a kill at any moment leaves the older ones as they
were. A thread writes while training goes on: what it writes are snapshots that cost no copy, since TensorFlow
gives a variable a new buffer when its old one is still in use.

Keys are those of ``variables.variables_of``: ``inference/conv_1/kernel``, ``optimizer/...``, ``global_step``.
"""

import glob
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from ...vocab import vocab
from ..errors import UserError
from ..system.files import staged
from .state import State
from .variables import average_key

NEWEST = "checkpoints"
"""Folder in a run with the newest checkpoints."""
BEST = "best"
"""Folder in a run with the best checkpoints by validation error."""

_INDEX = re.compile(r"ckpt-(\d+)\.index")
# TensorFlow's names; the one without which there is no checkpoint comes last.
_PARTS = ("data-00000-of-00001", "index")
_WRITING = ".writing"


def steps_in(folder: Path) -> list[int]:
    """Returns the steps of the checkpoints in ``folder``, in rising order."""
    if not folder.is_dir():
        return []
    return sorted(int(m[1]) for p in folder.iterdir() if (m := _INDEX.fullmatch(p.name)))


def snapshot(variables: Mapping[str, tf.Variable]) -> dict[str, tf.Tensor]:
    """Returns the values of variables, those on the first replica here."""
    local = tf.distribute.get_strategy().experimental_local_results
    return {key: local(variable)[0].read_value() for key, variable in variables.items()}


def write(path: Path, tensors: Mapping[str, tf.Tensor]) -> None:
    """Writes a checkpoint beside ``path`` and renames its files, the index last."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_name(f"{path.name}.{part}") for part in _PARTS]
    with staged(*files, folder=path.parent / _WRITING) as staging, tf.device("CPU:0"):
        tf.raw_ops.SaveV2(
            prefix=str(staging / path.name),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=list(tensors.values()),
        )


def read(prefix: Path) -> dict[str, Any]:
    """Returns everything in a checkpoint, by key: arrays, and the bytes of texts.

    Raises:
        tf.errors.OpError: it is damaged.
        ValueError: it does not exist.
    """
    with tempfile.TemporaryDirectory() as folder:
        if glob.has_magic(
            str(prefix)
        ):  # TensorFlow takes the path for a pattern, and `lr[0.1]` for a choice of letters
            link = Path(folder, "checkpoint")
            link.symlink_to(prefix.parent.absolute())
            prefix = link / prefix.name
        reader = tf.train.load_checkpoint(str(prefix))
        return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


def delete(folder: Path, step: int) -> None:
    """Deletes the checkpoint of a step, the index first."""
    for part in reversed(_PARTS):
        (folder / f"ckpt-{step}.{part}").unlink(missing_ok=True)


def save_variables(
    path: str | Path, variables: Mapping[str, tf.Variable], *, include: str = ".*"
) -> list[str]:
    """Writes a checkpoint of some variables at once, for ``--warm_start_from`` or another program.

    Args:
        path: of the checkpoint, without the ending: ``backbone/ckpt-0``.
        variables: by key, as ``variables.variables_of`` returns them.
        include: regular expression for the whole keys to save.

    Returns:
        The keys that were saved.

    Raises:
        UserError: no key matches.
    """
    chosen = {k: v for k, v in variables.items() if re.fullmatch(include, k)}
    if not chosen:
        raise UserError(f"{include!r} matches none of {', '.join(variables)}")
    write(Path(path), snapshot(chosen))
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
    ) -> None:
        """Saves nothing yet.

        Args:
            folder: where the checkpoints are.
            variables: by the keys that they have in a checkpoint.
            ignored: first parts of keys that a checkpoint may have beside those of ``variables``.
            averages: restore a variable's moving average, where there is one, in its place.
        """
        self.folder = folder
        self._ignored = ignored
        self._averages = averages
        self._variables = variables
        self._read: Callable[[], dict[str, tf.Tensor]] | None = None
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
        if (
            self._read is None
        ):  # traced once a run, and not through a call: TensorFlow warns of functions traced anew
            self._read = tf.function(lambda: snapshot(self._variables)).get_concrete_function()
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
        """Raises what went wrong with the last save as soon as that is known; does not wait.

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
                values = read(self.folder / f"ckpt-{step}")
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
            # The rate was a variable where a project of an earlier release gave its own optimizer a number.
            if key.partition("/")[0] not in self._ignored and not key.endswith("/learning_rate"):
                problems.append(f"{key} is not in this model")
        if problems:
            raise UserError(
                f"{origin} belongs to another model ({'; '.join(problems[:5])}"
                f"{'; ...' if len(problems) > 5 else ''}); use another --model_dir, with "
                "--warm_start_from to take over what fits"
            )
        for key, variable in self._variables.items():
            average = average_key(key) if self._averages else key
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
            write(self.folder / f"ckpt-{step}", tensors)
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
            delete(self.folder, other)


def _nonfinite(tensors: Mapping[str, tf.Tensor]) -> str | None:
    for key, tensor in tensors.items():
        if tensor.dtype.is_floating and not np.isfinite(tensor.numpy()).all():
            return key
    return None


def _first_line(error: Exception) -> str:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"\{\{.*?\}\} | \[Op:\w+\]", "", text)  # TensorFlow's names of its own parts
