"""Starts a model from values that were trained elsewhere: a run, a file of weights, or arrays in memory.

Only the variables of networks are taken, by their paths (``conv_1/kernel``); optimizer and step start anew.
Whatever is asked for and does not exist is an error: a backbone that silently stayed random costs a week.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from absl import logging

from ...vocab import vocab
from ..errors import UserError
from ..trainable import known, layers_by_path, some, variables_by_path
from .weights import read_source


@dataclasses.dataclass(frozen=True)
class Report:
    """What a warm start did, by variable path."""

    taken: list[str]
    """Variables that got the checkpoint's values."""

    left: list[str]
    """Variables of the model that keep their initial values."""

    skipped: list[str]
    """Values of the checkpoint that the model has no use for, or that were excluded."""


def assign_values(
    networks: Mapping[str, keras.Layer] | keras.Layer, values: Mapping[str, Any]
) -> None:
    """Sets variables of networks to arrays, by path: ``{"conv_1/kernel": array}``.

    Args:
        networks: one network, or several by name; see ``trainable.variables_by_path``.
        values: arrays of the variables' shapes.

    Raises:
        UserError: there is no such variable, or it has another shape; nothing is changed then.
    """
    variables = variables_by_path(networks)
    for path, value in values.items():
        if path not in variables:
            raise UserError(f"the model has no variable {path}; {known(path, variables)}")
        expected, found = tuple(variables[path].shape), np.shape(value)
        if expected != found:
            raise UserError(f"{path} has the shape {list(expected)}, the value {list(found)}")
    for path, value in values.items():
        variables[path].assign(value)


def warm_start(
    networks: Mapping[str, keras.Layer] | keras.Layer,
    source: str,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> Report:
    """Sets variables of networks to those of a checkpoint or a file.

    Args:
        networks: one network, or several by name; in a strategy's scope, if there is one.
        source: see ``read_source``.
        include: regular expressions for whole variable paths of the model; without any, all.
        exclude: likewise, what to leave out of those.
        names: from paths in the source to paths in the model; both may be a layer, which stands for all in it.

    Raises:
        UserError: nothing matched, a pattern or either side of an entry of ``names`` matched nothing, or a
            shape differs.
    """
    shapes = {path: tuple(v.shape) for path, v in variables_by_path(networks).items()}
    paths = list(shapes)
    layers = [path for path, _ in layers_by_path(networks)]
    for old, new in (names or {}).items():
        if not any(_is_within(path, new) for path in paths + layers):
            raise UserError(
                f"--warm_start_map={old}={new}: the model has no {new}; {known(new, paths)}"
            )
    several = networks if isinstance(networks, Mapping) else (vocab.inference,)
    values = _by_variable(networks, _renamed(read_source(source, several), names or {}))
    for flag, patterns in (("warm_start_include", include), ("warm_start_exclude", exclude)):
        for pattern in patterns:
            if not any(re.fullmatch(pattern, path) for path in paths):
                raise UserError(
                    f"--{flag}={pattern} matches no variable of the model; {known(pattern, paths)}"
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
            f"{some(values)}, the model {some(wanted)}; see --warm_start_map"
        )
    for pattern in include:
        if not any(re.fullmatch(pattern, path) for path in taken):
            raise UserError(
                f"--warm_start_include={pattern} takes nothing from {source}, which holds "
                f"{some(values)}; see --warm_start_map"
            )
    for path in taken:
        if shapes[path] != values[path].shape:
            raise UserError(
                f"--warm_start_from={source}: {path} is {list(values[path].shape)} there and "
                f"{list(shapes[path])} in the model; leave it out with "
                f"--warm_start_exclude={re.escape(path)}"
            )
    assign_values(networks, {path: values[path] for path in taken})
    report = Report(
        taken,
        left=[path for path in paths if path not in taken],
        skipped=[path for path in values if path not in taken],
    )
    for name, listed in dataclasses.asdict(report).items():
        logging.info("warm start, %s: %s", name, some(listed))
    return report


def _by_variable(
    networks: Mapping[str, keras.Layer] | keras.Layer, values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Returns the values with the path of a variable for each ``<layer>/<i>`` whose layer the model has.

    It is the layer with the same name in layers of the same names. Where there is none it is the only one for which one
    of the two has more layers around it: a network may have become a part of another since, or have been one.
    """
    paths = {id(v): path for path, v in variables_by_path(networks).items()}
    layers = list(layers_by_path(networks))
    exact = {key.rpartition("/")[0] for key in values}
    found: dict[str, np.ndarray] = {}
    for key, value in values.items():
        name, _, index = key.rpartition("/")
        same = [layer for path, layer in layers if path == name] or [
            layer
            for path, layer in layers
            if path not in exact and (path.endswith(f"/{name}") or name.endswith(f"/{path}"))
        ]
        own: dict[str, Any] = {}
        if index.isdecimal() and len({id(layer) for layer in same}) == 1:
            same[0].save_own_variables(own)  # as Keras orders them in a file
        path = paths.get(id(own.get(index)), key)
        if path in found:
            raise UserError(f"two layers of the file fit {path}: name one in --warm_start_map")
        found[path] = value
    return found


def _renamed(values: Mapping[str, np.ndarray], names: Mapping[str, str]) -> dict[str, np.ndarray]:
    for old in names:
        if not any(_is_within(path, old) for path in values):
            raise UserError(
                f"--warm_start_map={old}={names[old]}: the checkpoint holds no {old}; "
                f"{known(old, values)}"
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
