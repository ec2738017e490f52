"""Starts a model from values that were trained elsewhere: a run, a checkpoint, or arrays in memory.

Only the network's variables are taken, by their paths (``conv_1/kernel``); optimizer and step start anew.
Whatever is asked for and does not exist is an error: a backbone that silently stayed random costs a week.
"""

import dataclasses
import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from ...vocab import per_variable, vocab
from ..errors import UserError
from .checkpoints import BEST, NEWEST, read, steps_in

_OBJECT_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # in checkpoints written by tf.train.Checkpoint
_NETWORK = per_variable(vocab.inference, "")


@dataclasses.dataclass(frozen=True)
class Report:
    """What a warm start did, by variable path."""

    taken: list[str]
    """Variables that got the checkpoint's values."""

    left: list[str]
    """Variables of the model that keep their initial values."""

    skipped: list[str]
    """Values of the checkpoint that the model has no use for, or that were excluded."""


def read_source(source: str) -> dict[str, np.ndarray]:
    """Returns the values in a checkpoint by variable path.

    Args:
        source: the folder of a run (its newest checkpoint), a folder of checkpoints, ``.../ckpt-<step>``, or an
            export.

    Raises:
        UserError: there is no checkpoint, or it cannot be read.
    """
    path = Path(source)
    for folder in (path, path / NEWEST, path / BEST):
        if steps_in(folder):
            path = folder / f"ckpt-{steps_in(folder)[-1]}"
            break
    if (path / tf.saved_model.SAVED_MODEL_FILENAME_PB).is_file():
        path = path / tf.saved_model.VARIABLES_DIRECTORY / tf.saved_model.VARIABLES_FILENAME
    try:
        values = read(path)
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(
            f"--warm_start_from={source}: no checkpoint can be read there ({str(error).splitlines()[0]}); "
            "name the folder of a run, .../ckpt-<step> or .../export/<n>"
        ) from None
    arrays = {_plain_key(k): v for k, v in values.items() if _is_number(v)}
    network = {k.removeprefix(_NETWORK): v for k, v in arrays.items() if k.startswith(_NETWORK)}
    return network or arrays


def assign_values(network: keras.Model, values: Mapping[str, Any]) -> None:
    """Sets variables of the network to arrays, by path: ``{"conv_1/kernel": array}``.

    Raises:
        UserError: the network has no such variable, or it has another shape.
    """
    variables = {v.path: v for v in network.variables}
    for path, value in values.items():
        if path not in variables:
            raise UserError(f"the model has no variable {path}; {_nearest(path, variables)}")
        expected, found = tuple(variables[path].shape), np.shape(value)
        if expected != found:
            raise UserError(f"{path} has the shape {list(expected)}, the value {list(found)}")
    for path, value in values.items():
        variables[path].assign(value)


def warm_start(
    network: keras.Model,
    source: str,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> Report:
    """Sets variables of the network to those of a checkpoint.

    Args:
        network: in a strategy's scope, if there is one.
        source: see ``read_source``.
        include: regular expressions for whole variable paths of the model; without any, all.
        exclude: likewise, what to leave out of those.
        names: from paths in the checkpoint to paths in the model; both may be a folder of paths.

    Raises:
        UserError: nothing matched, a pattern or either side of an entry of ``names`` matched nothing, or a
            shape differs.
    """
    values = _renamed(read_source(source), names or {})
    shapes = {v.path: tuple(v.shape) for v in network.variables}
    paths = list(shapes)
    for old, new in (names or {}).items():
        if not any(_is_within(path, new) for path in paths):
            raise UserError(
                f"--warm_start_map={old}={new}: the model has no {new}; {_nearest(new, paths)}"
            )
    for flag, patterns in (("warm_start_include", include), ("warm_start_exclude", exclude)):
        for pattern in patterns:
            if not any(re.fullmatch(pattern, path) for path in paths):
                raise UserError(
                    f"--{flag}={pattern} matches no variable of the model; {_nearest(pattern, paths)}"
                )
    wanted = [
        path
        for path in paths
        if (not include or _matches(path, include)) and not _matches(path, exclude)
    ]
    taken = [path for path in wanted if path in values]
    if not taken:
        raise UserError(
            f"--warm_start_from={source}: no variable of the model is in it; it holds "
            f"{_some(values)}, the model {_some(wanted)}; see --warm_start_map"
        )
    for pattern in include:
        if not any(re.fullmatch(pattern, path) for path in taken):
            raise UserError(
                f"--warm_start_include={pattern} takes nothing from {source}, which holds "
                f"{_some(values)}; see --warm_start_map"
            )
    for path in taken:
        if shapes[path] != values[path].shape:
            raise UserError(
                f"--warm_start_from={source}: {path} is {list(values[path].shape)} there and "
                f"{list(shapes[path])} in the model; leave it out with "
                f"--warm_start_exclude={re.escape(path)}"
            )
    assign_values(network, {path: values[path] for path in taken})
    report = Report(
        taken,
        left=[path for path in paths if path not in taken],
        skipped=[path for path in values if path not in taken],
    )
    for name, listed in dataclasses.asdict(report).items():
        logging.info("warm start, %s: %s", name, ", ".join(listed) or "none")
    return report


def _plain_key(key: str) -> str:
    """Returns the key of a checkpoint without what TensorFlow adds where it saves objects, as in an export."""
    if not key.endswith(_OBJECT_SUFFIX):
        return key
    key = key.removesuffix(_OBJECT_SUFFIX).removeprefix(per_variable(vocab.variables, ""))
    return key.replace(".S", "/").replace("..", ".")


def _renamed(values: Mapping[str, np.ndarray], names: Mapping[str, str]) -> dict[str, np.ndarray]:
    for old in names:
        if not any(_is_within(path, old) for path in values):
            raise UserError(
                f"--warm_start_map={old}={names[old]}: the checkpoint holds no {old}; "
                f"{_nearest(old, values)}"
            )
    renamed: dict[str, np.ndarray] = {}
    for path, value in values.items():
        for old, new in names.items():
            if _is_within(path, old):
                path = new + path.removeprefix(old)
                break
        if path in renamed:
            raise UserError(f"--warm_start_map: two variables of the checkpoint become {path}")
        renamed[path] = value
    return renamed


def _is_within(path: str, name: str) -> bool:
    """Says whether ``name`` is the variable's path or a folder of it."""
    return path == name or path.startswith(f"{name}/")


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, path) for pattern in patterns)


def _nearest(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3)
    return f"nearest: {', '.join(near)}" if near else f"there are {_some(names)}"


def _some(names: Collection[str], count: int = 5) -> str:
    listed = sorted(names)
    return ", ".join(listed[:count]) + (", ..." if len(listed) > count else "")


def _is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
