"""TFRecord shards with random access.

The shards are plain TFRecord files, which other programs read too. Beside them lies one index for each split, which
says where every record begins: so a batch can be any set of examples, a pure function of (data, seed, step), and
resuming rereads nothing.
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
    """Returns an example as a serialised ``tf.train.Example``, uint8 values as one string of bytes: fast to parse.

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
    """Parses a batch of serialised examples, ``[batch] string``: for each feature a tensor ``[batch, *shape]``."""
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
    """Returns what a batch is made of, for ``input_signature``: by feature, the columns of ``x`` in a dictionary."""
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

    The ``examples``, as ``serialise`` takes them, are never all in memory; shards hold contiguous runs of nearly equal
    length, and no shard is empty.

    Raises:
        ValueError: ``examples`` yields fewer or more than ``examples_count``, or one is not as ``features`` say.
    """
    shards = max(1, min(shards, examples_count))
    index = np.zeros([examples_count, 3], np.int64)
    stream = iter(examples)
    written: list[Shard] = []
    first = 0
    for shard in range(shards):
        file = f"{name}-{shard:05d}-of-{shards:05d}.tfrecord"
        count = examples_count // shards + (shard < examples_count % shards)
        rows = index[first : first + count]
        rows[:, 0] = shard
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
        """Reads the index of the split ``name``, whose shards are in ``folder``.

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
        """Returns the payloads of records, ``[n] object`` of bytes, by ``indices``, ``[n] int64`` in any order.

        Raises:
            UserError: a record is corrupt or cut short, or its shard cannot be read.
        """
        indices = np.asarray(indices, np.int64)
        payloads = np.empty(indices.shape, object)
        rows = self._index[indices].tolist()
        # In the order of the files, so that each is looked up once and disks read forwards.
        current, file = -1, None
        for position in np.argsort(indices, kind="stable").tolist():
            shard, offset, length = rows[position]
            size = length + tfrecord.FRAME_BYTES
            try:
                if file is None or shard != current:
                    current, file = shard, self._file(shard)
                framed = file.read(size, offset)
            except OSError as error:
                raise self._error(shard, f"cannot be read ({error.strerror})") from None
            payload = tfrecord.unframe(framed)
            if payload is None or len(framed) != size:
                what = "corrupt" if len(framed) == size else "cut short"
                record = indices[position] - self._first[shard]
                raise self._error(shard, f"record {record} is {what}")
            payloads[position] = payload
        return payloads

    def _file(self, shard: int) -> tfrecord.File:
        """Returns the open file of a shard; the one used longest ago is dropped when too many are open."""
        with self._lock:
            file = self._open.get(shard) or tfrecord.File(self._folder / self._shards[shard].file)
            self._open[shard] = file
            self._open.move_to_end(shard)
            if len(self._open) > self._most_open:
                self._open.popitem(last=False)
            return file

    def _error(self, shard: int, problem: str) -> UserError:
        return dataset.damaged(self._folder / self._shards[shard].file, problem)

    def _load_index(self, path: Path) -> np.ndarray:
        try:
            # Mapped into memory: it is shared by all processes and need not fit.
            index = np.lib.format.open_memmap(path, mode="r")
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or "damaged"
            raise dataset.damaged(path, problem) from None
        if not self._matches(index):
            raise dataset.damaged(path, f"is not the index of the shards in {dataset.FILE}")
        return index

    def _matches(self, index: np.ndarray) -> bool:
        """Says whether the index lists the records of each shard from its first to its last byte."""
        if index.shape != (self._first[-1], 3) or index.dtype != np.int64:
            return False
        for i, shard in enumerate(self._shards):
            shards, offsets, lengths = index[self._first[i] : self._first[i + 1]].T
            ends = np.append(offsets[1:], shard.bytes)
            contiguous = np.array_equal(ends, offsets + lengths + tfrecord.FRAME_BYTES)
            if not contiguous or offsets[0] or np.any(lengths < 0) or np.any(shards != i):
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
    is_text = feature.dtype == "string"
    # As objects, because NumPy's own strings lose zeros at their ends.
    array = np.asarray(value, object if is_text else None)
    fits = array.dtype == feature.dtype
    if is_text:
        fits = all(isinstance(text, str | bytes) for text in array.flat)
    if not fits or array.shape != feature.shape:
        raise ValueError(
            f"feature {name!r} is {array.dtype} {list(array.shape)}, "
            f"expected {feature.dtype} {list(feature.shape)}"
        )
    values = array.ravel().tolist()
    if feature.dtype == "float32":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if feature.dtype == "int64":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if feature.dtype == "uint8":
        values = [array.tobytes()]
    elif is_text:
        values = [text.encode() if isinstance(text, str) else text for text in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


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
