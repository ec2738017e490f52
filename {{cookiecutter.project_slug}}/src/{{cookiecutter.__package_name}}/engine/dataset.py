"""A prepared data set: the files in ``data_dir`` and the ``dataset.json`` that describes them.

``dataset.json`` names its features, classes, statistics and files. It holds no time stamp and no path, so the same
source and seed give the same bytes on every machine; and as it holds the digest of every file, its own digest (the
``fingerprint``) stands for all of the data.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..vocab import vocab
from .errors import UserError

FILE = "dataset.json"
FORMAT = 1
TRAIN, VALIDATION, TEST = SPLITS = ("train", "validation", "test")
DTYPES = ("uint8", "float32", "int64", "string")


@dataclass(frozen=True)
class Feature:
    """One value of an example: a dtype of ``DTYPES`` and its shape, without the batch."""

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype {self.dtype!r} is none of {', '.join(DTYPES)}")


@dataclass(frozen=True)
class Shard:
    """One file of a split, TFRecord unless the project reads another format: its name, contents, size and digest."""

    file: str
    examples: int
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path, examples: int) -> Self:
        """Describes a file that was written."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.name, examples, path.stat().st_size, digest)


@dataclass(frozen=True)
class Split:
    """The shards of one split, in order: the examples are counted through them."""

    shards: tuple[Shard, ...]

    @property
    def examples(self) -> int:
        """Number of examples in all shards."""
        return sum(shard.examples for shard in self.shards)


@dataclass(frozen=True)
class Dataset:
    """A prepared data set, as ``load`` found it."""

    folder: Path
    source: str
    seed: int  # decided the splits and the order of the examples
    features: dict[str, Feature]
    classes: list[str]  # in the order of the labels; empty where there are none
    statistics: dict[str, Any]  # of the training split; what they are is up to ``prepare``
    splits: dict[str, Split]  # the three of ``SPLITS``
    fingerprint: str  # hexadecimal SHA-256 of ``dataset.json``; equal if and only if the data is

    @property
    def example_bytes(self) -> int:
        """Memory that one decoded example takes; of strings, what they take in the shards."""
        fixed = [feature for feature in self.features.values() if feature.dtype != "string"]
        size = sum(math.prod(f.shape) * np.dtype(f.dtype).itemsize for f in fixed)
        if len(fixed) < len(self.features):
            shards = [shard for split in self.splits.values() for shard in split.shards]
            size += sum(s.bytes for s in shards) // max(1, sum(s.examples for s in shards))
        return size

    @property
    def files(self) -> list[str]:
        """Names of all files of the data set."""
        files = [FILE]
        for name, split in self.splits.items():
            shards = [shard.file for shard in split.shards]
            has_index = any(file.endswith(".tfrecord") for file in shards)
            files += [*shards, *([index_file(name)] if has_index else [])]
        return files


def column_feature(column: str) -> str:
    """Returns the name of the feature that holds a column of ``x``."""
    return f"{vocab.x}/{column}"


def by_column(features: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values by feature with those of columns gathered in a dictionary, ``x``."""
    prefix = column_feature("")
    columns = {k.removeprefix(prefix): v for k, v in features.items() if k.startswith(prefix)}
    others = {k: v for k, v in features.items() if not k.startswith(prefix)}
    return {vocab.x: columns, **others} if columns else others


def index_file(split: str) -> str:
    """Returns the name of the file that says where in the shards each example of a split lies."""
    return f"{split}.index.npy"


def write(
    folder: Path,
    *,
    source: str,
    seed: int,
    features: Mapping[str, Feature],
    classes: Sequence[str],
    statistics: Mapping[str, Any],
    splits: Mapping[str, Split],
) -> None:
    """Writes ``dataset.json`` into ``folder``, beside the shards that it describes.

    Raises:
        ValueError: a feature is called ``x`` and others are columns of ``x``.
    """
    if vocab.x in features and len(by_column(features)) < len(features):
        raise ValueError(f"features {vocab.x!r}, {column_feature('...')!r}: x is one or the other")
    description = {
        "format": FORMAT,
        "source": source,
        "seed": seed,
        "features": {name: asdict(feature) for name, feature in features.items()},
        "classes": list(classes),
        "statistics": dict(statistics),
        "splits": {
            name: {vocab.examples: split.examples, "shards": [asdict(s) for s in split.shards]}
            for name, split in splits.items()
        },
    }
    description["digest"] = _digest(description)
    text = json.dumps(description, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / FILE).write_bytes(text.encode())


def load(data_dir: str | Path) -> Dataset:
    """Reads ``dataset.json`` and checks that it is as ``write`` wrote it and that the shards have their sizes.

    The contents of the shards are checked when they are read.

    Raises:
        UserError: there is no data yet; ``dataset.json`` is damaged, changed or of another format; a split is empty; a
            shard is missing or of another size.
    """
    dataset = read_description(data_dir)
    path = dataset.folder / FILE
    for name, split in dataset.splits.items():
        if not split.examples:
            raise damaged(path, f"the split {name!r} is empty")
        for shard in split.shards:
            _check_size(dataset.folder / shard.file, shard.bytes)
    description = json.loads(path.read_bytes())
    # Else an edited feature, class or statistic would fail deep inside the model, or not at all.
    if description.get("digest") != _digest(description):
        raise damaged(path, "was changed after it was written")
    return dataset


def read_description(data_dir: str | Path) -> Dataset:
    """Reads ``dataset.json`` without a look at the shards.

    Raises:
        UserError: there is no data yet, or ``dataset.json`` is damaged or of another format.
    """
    folder = Path(data_dir)
    path = folder / FILE
    try:
        contents = path.read_bytes()
        description = json.loads(contents)
        found = description["format"]
        if found == FORMAT:
            return _parse(folder, description, hashlib.sha256(contents).hexdigest())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"--data_dir={folder}: no data there yet; {_advice(folder)}") from None
    except OSError as error:
        problem = f"{path}: cannot be read ({error.strerror}); check its permissions"
        raise UserError(problem) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        detail = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise damaged(path, f"damaged ({detail})") from None
    raise damaged(path, f"its format is {found!r}, this program reads {FORMAT}")


def damaged(path: Path, problem: str) -> UserError:
    """Returns the error of a file of a data set, with the command that prepares it anew."""
    return UserError(f"{path}: {problem}; {_advice(path.parent)}")


def _advice(folder: Path) -> str:
    package = (__package__ or "").rpartition(".")[0]
    return (
        f"prepare it with: python -m {package}.prepare --source=... --data_dir={folder} "
        "(--help lists the sources)"
    )


def _parse(folder: Path, description: Mapping[str, Any], fingerprint: str) -> Dataset:
    splits = {}
    for name in SPLITS:
        entry = description["splits"][name]
        splits[name] = Split(tuple(Shard(**shard) for shard in entry["shards"]))
        found, said = splits[name].examples, entry[vocab.examples]
        if found != said:
            raise ValueError(f"{name}: {said} examples, but its shards hold {found}")
    return Dataset(
        folder=folder,
        source=str(description["source"]),
        seed=int(description["seed"]),
        features={
            name: Feature(feature["dtype"], tuple(feature["shape"]))
            for name, feature in description["features"].items()
        },
        classes=list(description["classes"]),
        statistics=dict(description["statistics"]),
        splits=splits,
        fingerprint=fingerprint,
    )


def _digest(description: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a description without its own digest."""
    rest = {name: value for name, value in description.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _check_size(path: Path, expected: int) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        problem = f"named in {FILE}, but cannot be read ({error.strerror})"
        raise damaged(path, problem) from None
    if size != expected:
        raise damaged(path, f"holds {size} bytes, {FILE} says {expected}")
