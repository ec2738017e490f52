"""Where the images come from. Yours to edit: a new source is one more function that returns ``Images``."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps

from .engine.errors import UserError

DIGITS = "digits"
EXTENSIONS = (".png", ".jpg", ".jpeg")
_LISTED_SIZES = 3

ImageSize = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class Images:
    """Labelled images, read one at a time, so that they need not fit into memory.

    Attributes:
        name: of the source, for ``dataset.json``; without the path, so that it is the same on every machine.
        classes: names, in the order of the labels.
        labels: ``[images]`` int64.
        shape: of every image, ``(height, width, channels)``; 1 channel is grey, 3 are red, green, blue.
        read: from the number of an image to its values, ``[height, width, channels]`` uint8.
        notice: what the user should know, such as files that were passed over; empty if nothing.
    """

    name: str
    classes: list[str]
    labels: np.ndarray
    shape: tuple[int, int, int]
    read: Callable[[int], np.ndarray]
    notice: str = ""


def open_images(source: str, image_size: ImageSize | None = None) -> Images:
    """Opens ``digits``, or a folder that holds a folder for each class.

    Args:
        source: ``digits`` or a path.
        image_size: every image is resized to it, without keeping the ratio of its sides; None takes them as they are.

    Raises:
        UserError: there are no such images, or they do not make a data set.
    """
    return digits(image_size) if source == DIGITS else folder(Path(source), image_size)


def digits(image_size: ImageSize | None = None) -> Images:
    """The 1,797 handwritten digits of 8x8 pixels that come with scikit-learn.

    https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits
    """
    from sklearn.datasets import load_digits

    bundled = load_digits()
    values = np.rint(bundled.images * (255 / 16)).astype(np.uint8)

    def read(number: int) -> np.ndarray:
        return to_array(Image.fromarray(values[number]), channels=1, image_size=image_size)

    return Images(
        name=DIGITS,
        classes=[str(name) for name in bundled.target_names],
        labels=bundled.target.astype(np.int64),
        shape=(*(image_size or values.shape[1:]), 1),
        read=read,
    )


def folder(path: Path, image_size: ImageSize | None = None) -> Images:
    """PNG and JPEG files, in one folder for each class: ``<path>/<class>/<any name>.png``.

    Images may be of any size and mode. They become grey if all of them are grey, otherwise RGB; 16 bits become 8;
    transparent ones are laid on white; the orientation that a camera noted is applied. Hidden files are ignored.

    Raises:
        UserError: there is no such folder; it has fewer than two classes; a class has no images; an image cannot be
            read; sizes differ and ``image_size`` is None.
    """
    classes, files, passed_over = _list(path)
    sizes: dict[ImageSize, Path] = {}
    is_grey = True
    for file, _ in files:
        with opened(file) as image:
            is_grey = is_grey and _is_grey(image)
            if image_size is None:
                sizes.setdefault(_upright_size(image), file)
    if len(sizes) > 1:
        found = ", ".join(
            f"{height},{width} ({file.name})"
            for (height, width), file in list(sizes.items())[:_LISTED_SIZES]
        )
        raise UserError(
            f"--source={path}: images of {len(sizes)} sizes, such as {found}; pass the height and "
            "width to resize all to: --image_size=64,64"
        )
    channels = 1 if is_grey else 3

    def read(number: int) -> np.ndarray:
        with opened(files[number][0]) as image:
            return to_array(image, channels=channels, image_size=image_size)

    return Images(
        name=Path(os.path.realpath(path)).name,
        classes=classes,
        labels=np.array([label for _, label in files], np.int64),
        shape=(*(image_size or next(iter(sizes))), channels),
        read=read,
        notice=f"passed over {len(passed_over)} that are not PNG or JPEG files of a class, such as "
        f"{passed_over[0]}"
        if passed_over
        else "",
    )


def to_array(
    image: Image.Image, *, channels: int, image_size: ImageSize | None = None
) -> np.ndarray:
    """Returns the values of an image of any mode, ``[height, width, channels]`` uint8.

    Args:
        image: as Pillow opened it.
        channels: 1 for grey, 3 for RGB.
        image_size: resized to it, with smoothing where it shrinks.
    """
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I"):
        # 16 bits; Pillow's own conversion would cut off all values above 255.
        values = np.clip(np.asarray(image, np.float64) / 257, 0, 255)
        image = Image.fromarray(np.rint(values).astype(np.uint8))
    elif image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    mode = "L" if channels == 1 else "RGB"
    if image.mode != mode:
        image = image.convert(mode)
    if image_size is not None and image.size != image_size[::-1]:
        image = image.resize(image_size[::-1], Image.Resampling.BILINEAR)
    return np.asarray(image).reshape(image.height, image.width, channels)


def _list(path: Path) -> tuple[list[str], list[tuple[Path, int]], list[Path]]:
    """Returns the classes, the files with their labels, and what was passed over."""
    if not path.is_dir():
        raise UserError(
            f"--source={path}: no such folder; name one that holds a folder of images for each class, "
            f"or `{DIGITS}`"
        )
    entries = _visible(path)
    folders = [entry for entry in entries if entry.is_dir()]
    if len(folders) < 2:
        found = f"only the class {folders[0].name!r}" if folders else "no folders"
        raise UserError(
            f"--source={path}: holds {found}; it must hold a folder of images for each of at least "
            "two classes"
        )
    files: list[tuple[Path, int]] = []
    passed_over = [entry for entry in entries if not entry.is_dir()]
    for label, class_folder in enumerate(folders):
        if not class_folder.name.isprintable():
            raise UserError(
                f"--source={path}: the name of the folder {class_folder.name!r} is not plain text; "
                "rename it"
            )
        before = len(files)
        for entry in _visible(class_folder):
            if entry.suffix.lower() in EXTENSIONS and entry.is_file():
                files.append((entry, label))
            else:
                passed_over.append(entry)
        if len(files) == before:
            raise UserError(
                f"--source={path}: the class {class_folder.name!r} has no PNG or JPEG files; add some or "
                "remove the folder"
            )
    return [folder.name for folder in folders], files, passed_over


def _visible(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """Yields an image file; whatever goes wrong in reading it is a ``UserError`` that names the file."""
    try:
        with Image.open(path) as image:
            yield image
    except Exception as error:  # Decoders raise anything: OSError, SyntaxError, struct.error, ...
        problem = str(error).replace("\n", " ") or type(error).__name__
        raise UserError(
            f"{path}: cannot be read as an image ({problem}); replace or remove it"
        ) from None


def _upright_size(image: Image.Image) -> ImageSize:
    """Returns height and width once the orientation that the camera noted is applied."""
    lies_on_its_side = image.getexif().get(ExifTags.Base.Orientation, 1) >= 5
    return image.size if lies_on_its_side else image.size[::-1]


def _is_grey(image: Image.Image) -> bool:
    if image.mode in ("P", "PA"):
        palette = np.reshape(image.getpalette("RGB") or [], [-1, 3])
        return bool(np.all(palette == palette[:, :1]))
    return image.mode in ("1", "L", "LA") or image.mode.startswith("I")
