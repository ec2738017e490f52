import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.hparams import metadata

from {{ cookiecutter.__package_name }}.engine import summaries
from {{ cookiecutter.__package_name }}.engine.summaries import Writer


def test_every_value_stands_under_its_tag_and_step(tmp_path, event_values):
    writer = Writer(tmp_path)
    writer.scalars(
        np.array([10, 20]), {"loss": np.array([0.5, 0.25]), "error": np.array([1, 0.75])}
    )
    writer.scalars(np.array([30]), {"loss": np.array([0.125]), "error": np.array([0.5])})
    assert sorted((tag, step, float(value)) for tag, step, value in event_values(tmp_path)) == [
        ("error", 10, 1.0),
        ("error", 20, 0.75),
        ("error", 30, 0.5),
        ("loss", 10, 0.5),
        ("loss", 20, 0.25),
        ("loss", 30, 0.125),
    ]


def test_tensorflow_writes_the_same(tmp_path, event_values):
    pixels = np.random.default_rng(0).integers(0, 256, [3, 6, 8, 1]).astype(np.uint8)
    weights = np.random.default_rng(0).normal(size=[40, 30]).astype(np.float32)
    writer = Writer(tmp_path / "ours")
    writer.write("images", "x", tf.constant(pixels), 0)
    writer.scalars(np.array([7]), {"loss": np.array([1 / 3], np.float32)})
    writer.write("histogram", "inference", tf.constant(weights), 7)
    writer.write("text", "label", tf.constant(["a", "b"]), 7)
    with tf.summary.create_file_writer(str(tmp_path / "theirs")).as_default():
        tf.summary.image("x", pixels, step=0, max_outputs=3)
        tf.summary.scalar("loss", np.float32(1 / 3), step=7)
        tf.summary.histogram("inference", weights, step=7)
        tf.summary.text("label", ["a", "b"], step=7)
    ours, theirs = event_values(tmp_path / "ours"), event_values(tmp_path / "theirs")
    assert [value[:2] for value in ours] == [value[:2] for value in theirs]
    for (_, _, value), (_, _, expected) in zip(ours, theirs, strict=True):
        if value.dtype == object:  # the parts of a picture
            assert value.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_steps_beyond_32_bits_are_kept(tmp_path, event_values):
    writer = Writer(tmp_path)
    writer.scalars(np.array([2**40]), {"loss": np.array([0.5])})
    assert [step for _, step, _ in event_values(tmp_path)] == [2**40]


def test_images_are_a_picture_of_the_first_sixteen(tmp_path, event_values):
    pixels = np.random.default_rng(0).integers(0, 256, [20, 8, 8, 1]).astype(np.uint8)
    writer = Writer(tmp_path)
    writer.write("images", "x", tf.constant(pixels), 0)
    ((tag, step, value),) = event_values(tmp_path)
    assert (tag, step) == ("x", 0)
    width, height, *pictures = value.tolist()
    assert (width, height, len(pictures)) == (b"8", b"8", 16)
    assert np.array_equal([tf.io.decode_png(picture) for picture in pictures], pixels[:16])


def test_pictures_take_the_place_of_those_before(tmp_path, event_values):
    for step in (1, 2):
        png = tf.io.encode_png(np.full([4, 6, 3], step, np.uint8)).numpy()
        summaries.write_pictures(tmp_path, {"confusion": png}, step)
    ((tag, step, value),) = event_values(tmp_path)
    assert (tag, step, *value[:2].tolist()) == ("confusion", 2, b"6", b"4")
    assert np.array_equal(tf.io.decode_png(value[2]), np.full([4, 6, 3], 2))


def test_hyper_parameters_take_the_place_of_those_before_and_keep_their_types(tmp_path):
    for rate in (0.1, 0.2):
        summaries.write_hparams(
            tmp_path, {"learning_rate": rate, "augment": True, "optimizer": "sgd"}
        )
    (value,) = [
        value
        for path in tmp_path.glob("events*")
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
    ]
    content = metadata.parse_session_start_info_plugin_data(value.metadata.plugin_data.content)
    found = {
        name: getattr(given, given.WhichOneof("kind")) for name, given in content.hparams.items()
    }
    assert found == {"learning_rate": 0.2, "augment": True, "optimizer": "sgd"}


def test_images_have_a_height_a_width_and_one_or_three_channels():
    assert summaries.are_images(tf.zeros([20, 7, 7, 1]))
    assert not summaries.are_images(tf.zeros([20, 7]))
    assert not summaries.are_images(tf.zeros([20, 7, 7, 2]))
    assert not summaries.are_images({"image": tf.zeros([20, 7, 7, 1])})


def test_a_process_without_a_folder_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Writer(None).write("scalar", "loss", 1.0, 1)
    assert list(tmp_path.iterdir()) == []


def test_what_an_action_shows_is_received_and_outside_of_training_nothing_happens():
    received = []
    with summaries.receiving(lambda *shown: received.append(shown)):
        summaries.write("scalar", "loss", 1.0)
    summaries.write("scalar", "loss", 2.0)
    assert received == [("scalar", "loss", 1.0)]
    with pytest.raises(
        ValueError, match=r"kind 'audio' is none of scalar, histogram, images, text"
    ):
        summaries.write("audio", "x", 0)
