import numpy as np
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.summaries import Writer


def test_every_value_stands_under_its_tag_and_step(tmp_path, event_values):
    writer = Writer(tmp_path)
    writer.scalars(
        np.array([10, 20]), {"loss": np.array([0.5, 0.25]), "error": np.array([1, 0.75])}
    )
    writer.scalars(np.array([30]), {"loss": np.array([0.125]), "error": np.array([0.5])})
    writer.flush()
    assert sorted((tag, step, float(value)) for tag, step, value in event_values(tmp_path)) == [
        ("error", 10, 1.0),
        ("error", 20, 0.75),
        ("error", 30, 0.5),
        ("loss", 10, 0.5),
        ("loss", 20, 0.25),
        ("loss", 30, 0.125),
    ]


def test_steps_beyond_32_bits_are_kept(tmp_path, event_values):
    writer = Writer(tmp_path)
    writer.scalars(np.array([2**40]), {"loss": np.array([0.5])})
    writer.flush()
    assert [step for _, step, _ in event_values(tmp_path)] == [2**40]


def test_images_are_a_picture_of_the_first_sixteen(tmp_path, event_values):
    pixels = np.random.default_rng(0).integers(0, 256, [20, 8, 8, 1]).astype(np.uint8)
    writer = Writer(tmp_path)
    writer.images(tf.constant(pixels), step=0)
    writer.flush()
    ((tag, step, value),) = event_values(tmp_path)
    assert (tag, step) == ("x", 0)
    width, height, *pictures = value.tolist()
    assert (width, height, len(pictures)) == (b"8", b"8", 16)
    assert np.array_equal([tf.io.decode_png(picture) for picture in pictures], pixels[:16])


def test_what_is_no_picture_is_left_out(tmp_path, event_values):
    writer = Writer(tmp_path)
    writer.images(tf.zeros([20, 7]), step=0)
    writer.images(tf.zeros([20, 7, 7, 2]), step=0)
    writer.flush()
    assert event_values(tmp_path) == []
