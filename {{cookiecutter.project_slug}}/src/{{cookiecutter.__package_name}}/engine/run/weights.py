"""Arrays from what was trained elsewhere: a run, a checkpoint, an export, or a file of weights of Keras or NumPy.

No code of a file is run: of a ``.keras`` file only its weights are read, and nothing is unpickled.
"""

import io
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tensorflow as tf

from ...vocab import per_variable, vocab
from ..errors import UserError
from . import variables as of_model
from .checkpoints import BEST, NEWEST, read, steps_in

_OBJECT_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # in checkpoints written by tf.train.Checkpoint
_KINDS = "a run, .../ckpt-<step>, .../export/<n>, or a .weights.h5, .keras or .npz file"
# What TensorFlow, h5py, zipfile and NumPy raise for a damaged file.
_UNREADABLE = (
    tf.errors.OpError,
    OSError,
    ValueError,
    LookupError,
    RuntimeError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_source(source: str, networks: Collection[str] = (vocab.inference,)) -> dict[str, Any]:
    """Returns the arrays in a checkpoint or file by variable path; those of a Keras file by ``<layer>/<i>``.

    Args:
        source: the folder of a run (its newest checkpoint), a folder of checkpoints, ``.../ckpt-<step>``, an export, a
            ``.weights.h5`` or ``.keras`` file of Keras 3 (no code in it is run), or an ``.npz`` file.
        networks: names of networks; where a checkpoint has variables of theirs, nothing else is taken from it.

    Raises:
        UserError: there is nothing to read, or it cannot be read.
    """
    path = Path(source)
    for folder in (path, path / NEWEST, path / BEST):
        if steps_in(folder):
            path = folder / f"ckpt-{steps_in(folder)[-1]}"
            break
    if (path / tf.saved_model.SAVED_MODEL_FILENAME_PB).is_file():
        path = path / tf.saved_model.VARIABLES_DIRECTORY / tf.saved_model.VARIABLES_FILENAME
    try:
        reader = _READERS.get(path.suffix, _read_checkpoint)
        values = {_plain_key(k): v for k, v in reader(path).items() if _is_number(v)}
    except _UNREADABLE as error:
        first = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise UserError(
            f"--warm_start_from={source}: no checkpoint can be read there ({first}); name {_KINDS}"
        ) from None
    if reader is not _read_checkpoint:
        return values
    own = {k: v for k, v in values.items() if k.partition("/")[0] in networks}
    return {of_model.path(k): v for k, v in (own or values).items()}


def _read_checkpoint(path: Path) -> dict[str, Any]:
    if path.is_file():
        raise UserError(
            f"--warm_start_from={path} is no kind of file that can be read; name {_KINDS}"
        )
    return read(path)


def _read_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _read_keras(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return _read_h5(io.BytesIO(archive.read("model.weights.h5")))


def _read_h5(file: Path | io.BytesIO) -> dict[str, Any]:
    """Returns the arrays in a file of ``save_weights``: its groups have Keras's names, ``vars`` in them the layer's."""
    arrays: dict[str, Any] = {}

    def visit(key: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or key.startswith(per_variable(vocab.optimizer, "")):
            return
        *groups, _, index = key.split("/")
        paths = ["/".join([*groups[: i + 1], "vars"]) for i in range(len(groups))]
        layers = [
            h5[path].attrs.get("name", group)
            for group, path in zip(groups, paths, strict=True)
            if path in h5
        ]
        value = item[()]
        if item.attrs.get("dtype") == "bfloat16":  # HDF5 has no such type
            value = value.view(tf.bfloat16.as_numpy_dtype).astype(np.float32)
        arrays["/".join([*layers, index])] = value

    with h5py.File(file) as h5:
        if "name" not in h5.get("vars", h5).attrs:
            raise ValueError(
                "it was written by Keras 2 or an early Keras 3: load it with keras.models.load_model and save it "
                "again with model.save_weights('x.weights.h5')"
            )
        h5.visititems(visit)
    return arrays


_READERS = {".npz": _read_npz, ".keras": _read_keras, ".h5": _read_h5}


def _plain_key(key: str) -> str:
    """Returns the key of a checkpoint without what TensorFlow adds where it saves objects, as in an export."""
    if not key.endswith(_OBJECT_SUFFIX):
        return key
    key = key.removesuffix(_OBJECT_SUFFIX).removeprefix(per_variable(vocab.variables, ""))
    return key.replace(".S", "/").replace("..", ".")


def _is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiu"
