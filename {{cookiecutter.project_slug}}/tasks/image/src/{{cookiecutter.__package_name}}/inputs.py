"""What ``predict`` is given: image files. Yours to edit.

A ``.csv`` lists images in its column ``input``, relative to its own folder; other columns are ignored.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .engine.errors import UserError
from .engine.examples import Inputs
from .engine.paths import expand
from .sources import EXTENSIONS, opened, to_array
from .vocab import vocab


def open_inputs(patterns: Sequence[str], expected: Mapping[str, Mapping[str, Any]]) -> Inputs:
    """Finds images; each is made as large, and as grey, as the model wants it, as ``prepare`` does.

    Args:
        patterns: what ``--input`` was given.
        expected: the model's inputs by name: ``{"x": {"dtype": "uint8", "shape": [None, height, width, channels]}}``.

    Raises:
        UserError: there are no images, or the model does not take images.
    """
    shape = expected[vocab.x]["shape"][1:] if list(expected) == [vocab.x] else []
    if len(shape) != 3 or expected[vocab.x]["dtype"] != "uint8" or shape[-1] not in (1, 3):
        raise UserError(f"the model is of another project: it takes {dict(expected)}, not images")
    height, width, channels = shape
    files: list[Path] = []
    for path in expand("--input", patterns, EXTENSIONS):
        files += _listed(path) if path.suffix.lower() == ".csv" else [path]

    def read(number: int) -> dict[str, np.ndarray]:
        with opened(files[number]) as image:
            return {vocab.x: to_array(image, channels=channels, image_size=(height, width))}

    return Inputs([str(file) for file in files], read)


def _listed(path: Path) -> list[Path]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            if vocab.input not in (rows.fieldnames or []):
                raise UserError(
                    f"--input={path}: has no column {vocab.input!r}, only {rows.fieldnames}; name the "
                    "images there"
                )
            listed = [path.parent / row[vocab.input] for row in rows if row[vocab.input]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"--input={path}: is no table ({error}); save it as CSV in UTF-8") from None
    if not listed:
        raise UserError(f"--input={path}: lists no image")
    return listed
