"""TFRecord shards with random access.

The shards are plain TFRecord files, readable by anything that reads those. Beside them lies one index for each split,
which says where every record begins: so a batch can be any set of examples, which is what makes it a pure function of
(data, seed, step), and resuming needs no rereading.
"""

import hashlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from .. import dataset
from ..dataset import Feature, Shard, Split
from ..errors import UserError
from . import tfrecord

_MOST_OPEN = 4_096  # shards, by one reader, where the system allows more


def serialise(example: Mapping[str, Any], features: Mapping[str, Feature]) -> bytes:
    """Returns an example as a serialised ``tf.train.Example``.

    The uint8 values of a feature are stored as one string of bytes, which is small and fast to parse.

    Args:
        example: an array or scalar for each name in ``features``.
        features: the dtype and shape that each must have.

    Raises:
        ValueError: names, dtypes or shapes are not those of ``features``.
    """
    if example.keys() != features.keys():
        raise ValueError(f"example has {sorted(example)}, the features are {sorted(features)}")
    return tf.train.Example(
        features=tf.train.Features(
            feature={name: _to_proto(name, example[name], features[name]) for name in features}
        )
        # Otherwise the order of the names, and so the bytes, would differ from run to run.
    ).SerializeToString(deterministic=True)


def parse(serialised: tf.Tensor, features: Mapping[str, Feature]) -> dict[str, tf.Tensor]:
    """Parses a batch of serialised examples at once.

    Args:
        serialised: ``[batch]`` string.
        features: what to take from each example.

    Returns:
        For each feature a tensor ``[batch, *shape]`` of its dtype.
    """
    parsed = tf.io.parse_example(
        serialised,
        {
            name: tf.io.FixedLenFeature([], tf.string)
            if feature.dtype == "uint8"
            else tf.io.FixedLenFeature(feature.shape, tf.as_dtype(feature.dtype))
            for name, feature in features.items()
        },
    )
    for name, feature in features.items():
        if feature.dtype == "uint8":
            values = tf.io.decode_raw(parsed[name], tf.uint8)
            parsed[name] = tf.reshape(values, [-1, *feature.shape])
    return parsed


def specs(features: Mapping[str, Feature]) -> dict[str, Any]:
    """Returns what a batch is made of, for ``input_signature``: ``x``, by column if it has any, and ``y``."""
    return dataset.by_column(
        {
            name: tf.TensorSpec([None, *feature.shape], tf.as_dtype(feature.dtype))
            for name, feature in features.items()
        }
    )


def write_split(
    folder: Path,
    name: str,
    examples: Iterable[Mapping[str, Any]],
    features: Mapping[str, Feature],
    examples_count: int,
    shards: int,
) -> Split:
    """Writes ``<name>-SSSSS-of-NNNNN.tfrecord`` and ``<name>.index.npy`` into ``folder``.

    Examples go to the shards in contiguous runs of nearly equal length, one at a time: they are never all in memory.

    Args:
        folder: where to write; nothing there is replaced by renaming, so write into a new folder.
        name: of the split.
        examples: the examples in their order; see ``serialise``.
        features: of every example.
        examples_count: how many ``examples`` yields.
        shards: how many files to write, if there are as many examples.

    Returns:
        What ``dataset.json`` says about the split.

    Raises:
        ValueError: ``examples`` yields fewer or more than ``examples_count``.
    """
    shards = max(1, min(shards, examples_count))
    index = np.zeros([examples_count, 3], np.int64)
    stream = iter(examples)
    written: list[Shard] = []
    first = 0
    for number in range(shards):
        file = f"{name}-{number:05d}-of-{shards:05d}.tfrecord"
        count = examples_count // shards + (number < examples_count % shards)
        rows = index[first : first + count]
        rows[:, 0] = number
        payloads = (serialise(example, features) for example in islice(stream, count))
        written.append(_write_shard(folder / file, payloads, rows))
        first += count
    if next(stream, None) is not None:
        raise ValueError(f"split {name!r}: more than the announced {examples_count} examples")
    np.save(folder / dataset.index_file(name), index)
    return Split(tuple(written))


class Reader:
    """Reads any records of a split, in any order. Safe to use from several threads."""

    def __init__(self, folder: str | Path, name: str, split: Split) -> None:
        """Reads the index.

        Args:
            folder: where the shards are.
            name: of the split.
            split: as described by ``dataset.json``.

        Raises:
            UserError: the index is missing or damaged, or is not of these shards.
        """
        self._folder = Path(folder)
        self._shards = split.shards
        self._first = np.cumsum([0, *(shard.examples for shard in split.shards)])
        self._index = self._load_index(self._folder / dataset.index_file(name))
        self._open: OrderedDict[int, tfrecord.File] = OrderedDict()
        self._most_open = _most_open()
        self._lock = threading.Lock()

    def read(self, indices: np.ndarray) -> np.ndarray:
        """Returns the payloads of some records.

        Args:
            indices: ``[n]`` int64, numbers of examples within the split; any order, repetitions allowed.

        Returns:
            ``[n]`` object, each a ``bytes``.

        Raises:
            UserError: a record is corrupt or cut short, or its shard cannot be read.
        """
        indices = np.asarray(indices, np.int64)
        payloads = np.empty(indices.shape, object)
        rows = self._index[indices].tolist()
        # In the order of the files, so that each is looked up once and disks read forwards.
        shard, file = -1, None
        for position in np.argsort(indices, kind="stable").tolist():
            number, offset, length = rows[position]
            if file is None or number != shard:
                shard, file = number, self._file(number)
            size = length + tfrecord.FRAME_BYTES
            try:
                framed = file.read(size, offset)
            except OSError as error:
                raise self._error(number, f"cannot be read ({error.strerror})") from None
            payload = tfrecord.unframe(framed)
            if payload is None or len(framed) != size:
                what = "is corrupt" if len(framed) == size else "is cut short"
                record = int(indices[position] - self._first[number])
                raise self._error(number, f"record {record} {what}")
            payloads[position] = payload
        return payloads

    def _file(self, number: int) -> tfrecord.File:
        """Returns the open shard; the one used longest ago is dropped when too many are open."""
        with self._lock:
            file = self._open.get(number)
            if file is None:
                try:
                    file = self._open[number] = tfrecord.File(
                        self._folder / self._shards[number].file
                    )
                except OSError as error:
                    raise self._error(number, f"cannot be read ({error.strerror})") from None
                if len(self._open) > self._most_open:
                    self._open.popitem(last=False)
            self._open.move_to_end(number)
            return file

    def _error(self, number: int, problem: str) -> UserError:
        path = self._folder / self._shards[number].file
        return UserError(f"{path}: {problem}; {dataset.advice(self._folder)}")

    def _load_index(self, path: Path) -> np.ndarray:
        try:
            # Mapped into memory: it is shared by all processes and need not fit.
            index = np.lib.format.open_memmap(path, mode="r")
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) and error.strerror else "damaged"
            raise UserError(f"{path}: {problem}; {dataset.advice(self._folder)}") from None
        if not self._matches(index):
            raise UserError(
                f"{path}: is not the index of the shards in {dataset.FILE}; "
                f"{dataset.advice(self._folder)}"
            )
        return index

    def _matches(self, index: np.ndarray) -> bool:
        """Says whether the index lists the records of each shard from its first to its last byte."""
        if index.shape != (self._first[-1], 3) or index.dtype != np.int64:
            return False
        for number, shard in enumerate(self._shards):
            numbers, offsets, lengths = index[self._first[number] : self._first[number + 1]].T
            ends = np.append(offsets[1:], shard.bytes)
            contiguous = np.array_equal(ends, offsets + lengths + tfrecord.FRAME_BYTES)
            if not contiguous or offsets[0] or np.any(lengths < 0) or np.any(numbers != number):
                return False
        return True


def _most_open() -> int:
    """Returns how many shards a reader may keep open: a quarter of the files that the process may have open."""
    if sys.platform == "win32":
        return _MOST_OPEN // 4
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_OPEN if files == resource.RLIM_INFINITY else min(_MOST_OPEN, max(1, files // 4))


def _to_proto(name: str, value: Any, feature: Feature) -> tf.train.Feature:
    # As objects, because NumPy's own strings lose zeros at their ends.
    array = np.asarray(value, object if feature.dtype == "string" else None)
    if feature.dtype == "string":
        fits = all(isinstance(text, str | bytes) for text in array.flat)
    else:
        fits = array.dtype == feature.dtype
    if not fits or array.shape != feature.shape:
        raise ValueError(
            f"feature {name!r} is {array.dtype} {list(array.shape)}, "
            f"expected {feature.dtype} {list(feature.shape)}"
        )
    if feature.dtype == "uint8":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[array.tobytes()]))
    values = array.ravel().tolist()
    if feature.dtype == "string":
        encoded = [text.encode() if isinstance(text, str) else text for text in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))
    if feature.dtype == "float32":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _write_shard(path: Path, payloads: Iterable[bytes], rows: np.ndarray) -> Shard:
    """Writes one shard, and the offset and length of each record into ``rows[:, 1:]``."""
    digest = hashlib.sha256()
    size = count = 0
    with path.open("wb") as file:
        for payload in payloads:
            framed = tfrecord.frame(payload)
            file.write(framed)
            digest.update(framed)
            rows[count, 1:] = size, len(payload)
            size += len(framed)
            count += 1
    if count != len(rows):
        raise ValueError(f"{path.name}: {count} examples, {len(rows)} were announced")
    return Shard(path.name, count, size, digest.hexdigest())
