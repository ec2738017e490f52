"""Files of checkpoints: named variables in TensorFlow's checkpoint format, never half.

A checkpoint ``ckpt-<step>`` is two files. They are written in a folder of their own and renamed, the index
last: a checkpoint without an index does not exist, so a kill at any moment leaves the older ones as they
were.

Keys are what the vocabulary calls them: ``inference/conv_1/kernel``, ``optimizer/...``, ``global_step``.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from ...vocab import per_variable, vocab
from .. import optimizers

NEWEST = "checkpoints"
"""Folder in a run with the newest checkpoints."""
BEST = "best"
"""Folder in a run with the best checkpoints by validation error."""

_INDEX = re.compile(r"ckpt-(\d+)\.index")
# TensorFlow's names; the one without which there is no checkpoint comes last.
_PARTS = ("data-00000-of-00001", "index")
_WRITING = ".writing"


def variables_of(model: Any, *, optimizer: bool = True) -> dict[str, tf.Variable]:
    """Returns the variables of a model by their keys: its network's, its step and its optimizer's."""
    named = {per_variable(vocab.inference, v.path): v.value for v in model.network.variables}
    named[vocab.global_step] = model.optimizer.iterations.value
    if optimizer:
        averages = {id(average): v.path for v, average in optimizers.averages(model.optimizer)}
        for v in model.optimizer.variables:
            if id(v) in averages:
                named[per_variable(vocab.average, averages[id(v)])] = v.value
            elif v is not model.optimizer.iterations:
                named[per_variable(vocab.optimizer, v.path)] = v.value
    return named


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
    """Writes a checkpoint in a folder of its own and renames it to ``path``, the index last."""
    writing = path.parent / _WRITING
    shutil.rmtree(writing, ignore_errors=True)  # of a process that was killed
    writing.mkdir(parents=True, exist_ok=True)
    with tf.device("CPU:0"):
        tf.raw_ops.SaveV2(
            prefix=str(writing / path.name),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=list(tensors.values()),
        )
    for part in _PARTS:
        written = writing / f"{path.name}.{part}"
        _flush(written)
        written.replace(path.parent / written.name)
    _flush(path.parent)


def read(prefix: Path) -> dict[str, Any]:
    """Returns everything in a checkpoint, by key: arrays, and the bytes of texts.

    Raises:
        tf.errors.OpError: it is damaged.
        ValueError: it does not exist.
    """
    reader = tf.train.load_checkpoint(str(prefix))
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


def delete(folder: Path, step: int) -> None:
    """Deletes the checkpoint of a step, the index first."""
    for part in reversed(_PARTS):
        (folder / f"ckpt-{step}.{part}").unlink(missing_ok=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
