import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from {{ cookiecutter.__package_name }} import sources
from {{ cookiecutter.__package_name }}.engine.errors import UserError

GREY = np.arange(0, 240, 20, dtype=np.uint8).reshape(3, 4)
COLOUR = np.random.default_rng(0).integers(0, 256, [3, 4, 3]).astype(np.uint8)
ORIENTATION = 0x0112


def save(image, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(path, **options)
    return path


@pytest.fixture
def photos(tmp_path):
    """Two classes of three grey images of 3x4 pixels."""
    for name in ("cats", "dogs"):
        for number in range(3):
            save(GREY + number, tmp_path / "photos" / name / f"{number}.png")
    return tmp_path / "photos"


def only_image(tmp_path, image, suffix="png", image_size=None, **options):
    """Returns the values of ``image`` after it has been written to a file and read from there."""
    save(image, tmp_path / "photos" / "a" / f"0.{suffix}", **options)
    save(image, tmp_path / "photos" / "b" / f"0.{suffix}", **options)
    images = sources.open_images(str(tmp_path / "photos"), image_size)
    values = images.read(0)
    assert values.dtype == np.uint8
    assert values.shape == images.shape
    return values


def test_digits_are_those_of_scikit_learn():
    images = sources.open_images("digits")
    bundled = load_digits()
    values = np.stack([images.read(number) for number in range(len(images.labels))])
    assert images.shape == (8, 8, 1)
    assert np.array_equal(images.labels, bundled.target)
    assert np.max(np.abs(values[..., 0] * (16 / 255) - bundled.images)) < 0.04
    assert images.classes == list("0123456789")


def test_digits_are_resized():
    images = sources.open_images("digits", (12, 10))
    original = Image.fromarray(np.rint(load_digits().images[5] * 255 / 16).astype(np.uint8))
    expected = np.asarray(original.resize((10, 12), Image.Resampling.BILINEAR))
    assert images.shape == (12, 10, 1)
    assert np.array_equal(images.read(5)[..., 0], expected)


def test_a_folder_holds_a_folder_for_each_class(photos):
    images = sources.open_images(str(photos))
    assert images.name == "photos"
    assert images.classes == ["cats", "dogs"]
    assert images.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert images.shape == (3, 4, 1)
    assert np.array_equal(images.read(4)[..., 0], GREY + 1)
    assert not images.notice


def test_hidden_files_are_ignored_and_others_named(photos):
    (photos / ".DS_Store").write_text("")
    (photos / "cats" / "._0.png").write_text("")
    (photos / ".git").mkdir()
    assert not sources.open_images(str(photos)).notice
    (photos / "cats" / "notes.txt").write_text("")
    (photos / "readme.md").write_text("")
    images = sources.open_images(str(photos))
    assert images.notice.startswith("passed over 2 ")
    assert str(photos / "readme.md") in images.notice
    assert len(images.labels) == 6


def test_images_are_grey_if_all_are_and_otherwise_rgb(photos):
    assert sources.open_images(str(photos)).shape[-1] == 1
    save(COLOUR, photos / "dogs" / "colour.png")
    images = sources.open_images(str(photos))
    assert images.shape == (3, 4, 3)
    assert np.array_equal(images.read(0), np.stack([GREY] * 3, axis=-1))
    assert np.array_equal(images.read(len(images.labels) - 1), COLOUR)


@pytest.mark.parametrize("suffix", ["jpg", "jpeg", "JPG"])
def test_jpeg_is_read(tmp_path, suffix):
    values = only_image(tmp_path, np.full([8, 8, 3], [250, 10, 60], np.uint8), suffix)
    assert np.max(np.abs(values.astype(int) - [250, 10, 60])) <= 3


def test_palette_is_looked_up(tmp_path):
    palette = Image.fromarray(COLOUR).quantize(12)
    values = only_image(tmp_path, palette)
    assert np.array_equal(values, np.asarray(palette.convert("RGB")))


def test_grey_palette_is_grey(tmp_path):
    palette = Image.fromarray(GREY).convert("P")
    assert np.array_equal(only_image(tmp_path, palette)[..., 0], GREY)


def test_black_and_white_becomes_0_and_255(tmp_path):
    values = only_image(tmp_path, Image.fromarray(GREY > 100))
    assert np.array_equal(values[..., 0], 255 * (GREY > 100))


def test_transparent_parts_are_white(tmp_path):
    alpha = np.full([3, 4, 1], 255, np.uint8)
    alpha[0], alpha[1] = 0, 51
    values = only_image(tmp_path, np.concatenate([COLOUR, alpha], axis=-1))
    assert np.all(values[0] == 255)
    assert np.max(np.abs(values[1] - (255 * 0.8 + COLOUR[1] * 0.2))) <= 1
    assert np.array_equal(values[2], COLOUR[2])


def test_transparent_parts_of_grey_images_are_white(tmp_path):
    alpha = np.full([3, 4], 255, np.uint8)
    alpha[0] = 0
    values = only_image(tmp_path, Image.merge("LA", [*map(Image.fromarray, (GREY, alpha))]))
    assert values.shape == (3, 4, 1)
    assert np.all(values[0] == 255)
    assert np.array_equal(values[1:, :, 0], GREY[1:])


def test_a_transparent_colour_of_a_palette_is_white(tmp_path):
    palette = Image.fromarray(COLOUR).quantize(12)
    values = only_image(tmp_path, palette, transparency=int(np.asarray(palette)[0, 0]))
    assert np.all(values[0, 0] == 255)
    assert np.array_equal(values[1:], np.asarray(palette.convert("RGB"))[1:])


def test_16_bits_become_8(tmp_path):
    values = only_image(tmp_path, GREY.astype(np.uint16) * 257)
    assert np.array_equal(values[..., 0], GREY)


def test_cmyk_becomes_rgb(tmp_path):
    red = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    values = only_image(tmp_path, red, "jpg")
    assert np.max(np.abs(values.astype(int) - [255, 0, 0])) <= 3


@pytest.mark.parametrize("suffix", ["png", "jpg"])
@pytest.mark.parametrize("image_size", [None, (16, 8)])
def test_the_orientation_that_a_camera_noted_is_applied(tmp_path, suffix, image_size):
    upright = np.zeros([16, 8], np.uint8)
    upright[:8] = 200
    exif = Image.Exif()
    exif[ORIENTATION] = 6  # turn by 90 degrees clockwise to see it upright
    values = only_image(tmp_path, np.rot90(upright), suffix, image_size, exif=exif)
    assert values.shape == (16, 8, 1)
    assert np.max(np.abs(values[..., 0].astype(int) - upright)) <= 3


def test_images_of_different_sizes_need_image_size(photos):
    save(np.zeros([9, 7], np.uint8), photos / "dogs" / "large.png")
    with pytest.raises(UserError, match=r"2 sizes, such as 3,4 .*9,7 \(large.png\).*--image_size="):
        sources.open_images(str(photos))
    images = sources.open_images(str(photos), (6, 5))
    assert images.shape == (6, 5, 1)
    assert {images.read(number).shape for number in range(7)} == {(6, 5, 1)}


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match=f"--source={tmp_path}/none: no such folder"):
        sources.open_images(f"{tmp_path}/none")


def test_a_folder_without_class_folders_is_refused(tmp_path):
    save(GREY, tmp_path / "photos" / "0.png")
    with pytest.raises(UserError, match="holds no folders"):
        sources.open_images(str(tmp_path / "photos"))


def test_a_folder_with_one_class_is_refused(tmp_path):
    save(GREY, tmp_path / "photos" / "cats" / "0.png")
    with pytest.raises(UserError, match="holds only the class 'cats'"):
        sources.open_images(str(tmp_path / "photos"))


def test_a_class_without_images_is_refused(photos):
    (photos / "birds").mkdir()
    (photos / "birds" / "list.txt").write_text("")
    with pytest.raises(UserError, match="the class 'birds' has no PNG or JPEG files"):
        sources.open_images(str(photos))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("empty.png", lambda good: b""),
        ("empty.jpg", lambda good: b""),
        ("text.png", lambda good: b"no image"),
        ("text.jpg", lambda good: b"no image"),
        ("cut.png", lambda good: good[: len(good) // 2]),
        ("cut.jpg", lambda good: good[: len(good) // 2]),
        ("scrambled.png", lambda good: good[:-90] + bytes(60) + good[-30:]),
    ],
)
def test_an_unreadable_image_is_named(photos, name, damage):
    path = save(np.tile(GREY, [40, 40]), photos / "dogs" / name)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=f"{path}: cannot be read as an image") as caught:
        sources.open_images(str(photos), (3, 4)).read(3 + 3)
    assert "\n" not in str(caught.value)
