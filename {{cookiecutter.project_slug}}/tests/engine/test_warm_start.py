import json
import re
import zipfile

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.run.checkpoints import save_variables
from {{ cookiecutter.__package_name }}.engine.run.warm_start import assign_values, warm_start
from {{ cookiecutter.__package_name }}.engine.run.weights import read_source
from {{ cookiecutter.__package_name }}.model import Model

from comparing import assert_same_bits


def network(*names, units=3):
    """A chain of dense layers with these names."""
    x = h = keras.Input((3,))
    for name in names:
        h = keras.layers.Dense(units, name=name)(h)
    return keras.Model(x, h)


def values_of(model):
    return {v.path: v.numpy() for v in model.weights}


@pytest.fixture
def source(tmp_path):
    """A checkpoint of the layers `body` and `head`, and its values by path."""
    values = {
        f"{layer}/{name}": np.random.default_rng(i).normal(size=shape).astype(np.float32)
        for i, layer in enumerate(("body", "head"))
        for name, shape in (("kernel", (3, 3)), ("bias", (3,)))
    }
    path = tmp_path / "ckpt-7"
    save_variables(path, {f"inference/{path}": tf.Variable(v) for path, v in values.items()})
    return str(path), values


def test_everything_of_the_same_name_is_taken(source):
    path, values = source
    model = network("body", "head")
    report = warm_start(model, path)
    assert set(report.taken) == set(values)
    assert report.left == report.skipped == []
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, values[name])


def test_what_the_checkpoint_lacks_keeps_its_values_and_what_the_model_lacks_is_skipped(source):
    path, values = source
    model = network("body", "other")
    before = values_of(model)
    report = warm_start(model, path)
    assert report.taken == ["body/kernel", "body/bias"]
    assert report.left == ["other/kernel", "other/bias"]
    assert set(report.skipped) == {"head/kernel", "head/bias"}
    after = values_of(model)
    np.testing.assert_array_equal(after["other/kernel"], before["other/kernel"])
    np.testing.assert_array_equal(after["body/kernel"], values["body/kernel"])


@pytest.mark.parametrize(
    "patterns",
    [{"include": ["body/.*"]}, {"exclude": ["head/.*"]}, {"include": ["body/k.*", "body/bias"]}],
)
def test_patterns_choose_among_the_variables(source, patterns):
    report = warm_start(network("body", "head"), source[0], **patterns)
    assert report.taken == ["body/kernel", "body/bias"]


def test_a_pattern_is_for_the_whole_path(source):
    with pytest.raises(UserError, match=r"--warm_start_include=body matches no variable"):
        warm_start(network("body", "head"), source[0], include=["body"])


@pytest.mark.parametrize(
    "names", [{"body": "trunk"}, {"body/kernel": "trunk/kernel", "body/bias": "trunk/bias"}]
)
def test_a_map_renames_layers_and_variables(source, names):
    path, values = source
    model = network("trunk", "head")
    report = warm_start(model, path, names=names)
    assert report.left == []
    np.testing.assert_array_equal(values_of(model)["trunk/kernel"], values["body/kernel"])


def test_a_mistyped_pattern_suggests_the_nearest_names(source):
    with pytest.raises(UserError, match=r"--warm_start_exclude=haed/kernel .*head/kernel"):
        warm_start(network("body", "head"), source[0], exclude=["haed/kernel"])


def test_an_unused_entry_of_the_map_suggests_the_nearest_names(source):
    with pytest.raises(UserError, match=r"--warm_start_map=bdy=trunk: .*body"):
        warm_start(network("trunk", "head"), source[0], names={"bdy": "trunk"})


def test_an_entry_of_the_map_to_nothing_suggests_the_nearest_names(source):
    with pytest.raises(
        UserError, match=r"--warm_start_map=body=trnk: the model has no trnk.*trunk"
    ):
        warm_start(network("trunk", "head"), source[0], names={"body": "trnk"})


def test_a_pattern_that_takes_nothing_from_the_checkpoint_is_an_error(source):
    with pytest.raises(UserError, match=r"--warm_start_include=trunk/\.\* takes nothing"):
        warm_start(network("trunk", "head"), source[0], include=["trunk/.*", "head/.*"])


def test_two_values_for_one_variable_are_an_error(source):
    with pytest.raises(UserError, match="two variables of the checkpoint become head/"):
        warm_start(network("body", "head"), source[0], names={"body": "head"})


def test_nothing_in_common_is_an_error_that_shows_both_sides(source):
    with pytest.raises(UserError, match=r"it holds body/bias.*the model x/bias"):
        warm_start(network("x", "y"), source[0])


def test_another_shape_is_an_error_that_gives_both_and_changes_nothing(source):
    model = network("body", "head", units=4)
    before = values_of(model)
    with pytest.raises(UserError, match=r"body/kernel is \[3, 3\] there and \[3, 4\]"):
        warm_start(model, source[0])
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_source_without_a_checkpoint_is_an_error(tmp_path):
    with pytest.raises(UserError, match=f"--warm_start_from={tmp_path}: no checkpoint"):
        warm_start(network("body"), str(tmp_path))


def test_two_networks_are_started_by_their_names(tmp_path):
    networks = {"generator": network("body"), "inference": network("body")}
    trained = {
        key: np.random.default_rng(i).normal(size=3).astype(np.float32)
        for i, key in enumerate(("generator/body/bias", "inference/body/bias", "optimizer/rate"))
    }
    path = tmp_path / "ckpt-1"
    save_variables(path, {key: tf.Variable(value) for key, value in trained.items()})
    report = warm_start(networks, str(path), exclude=[".*/kernel"])
    assert report.taken == ["generator/body/bias", "body/bias"]
    assert report.skipped == []
    for name, changed in networks.items():
        np.testing.assert_array_equal(values_of(changed)["body/bias"], trained[f"{name}/body/bias"])
    assign_values(networks, {"generator/body/bias": [1, 2, 3], "body/bias": [4, 5, 6]})
    np.testing.assert_array_equal(values_of(networks["generator"])["body/bias"], [1, 2, 3])


def test_a_checkpoint_in_a_folder_with_brackets_can_be_read(source, tmp_path):
    """TensorFlow takes a path for a pattern: `lr[0.1]` stands for a `lr0` to it."""
    _, values = source
    folder = tmp_path / "lr[0.1]*"
    folder.mkdir()
    for part in tmp_path.glob("ckpt-7.*"):
        part.rename(folder / part.name)
    model = network("body", "head")
    warm_start(model, str(folder))
    np.testing.assert_array_equal(values_of(model)["head/kernel"], values["head/kernel"])


def backbone(seed, classes=4, width=3):
    """A network with all that Keras orders in files: statistics, a network and a composite layer in it."""
    keras.utils.set_random_seed(seed)
    x = keras.Input((4, width))
    h = keras.layers.Conv1D(5, 2, padding="same", name="conv")(x)
    h = keras.layers.BatchNormalization(name="normalization")(h)
    inner = keras.Sequential([keras.layers.Dense(6, name="dense")], name="inner")
    h = keras.layers.MultiHeadAttention(2, 3, name="attention")(inner(h), h)
    h = keras.layers.Bidirectional(keras.layers.LSTM(3, name="lstm"), name="both")(h)
    network = keras.Model(x, keras.layers.Dense(classes, name="head")(h), name="backbone")
    for i, variable in enumerate(network.weights):
        drawn = np.random.default_rng(100 * seed + i).uniform(0.1, 1, variable.shape)
        variable.assign(drawn)
    return network


@pytest.fixture
def saved(tmp_path):
    """Returns a function that saves a network of Keras in a file of this ending and returns its path."""

    def save(network, ending):
        path = str(tmp_path / f"saved{ending}")
        if ending == ".npz":
            np.savez(path, **values_of(network))
        elif ending == ".keras":
            network.compile("adam", "mse")
            network.optimizer.build(network.trainable_variables)
            network.save(path)
        else:
            network.save_weights(path)
        return path

    return save


@pytest.mark.parametrize("ending", [".weights.h5", ".keras", ".npz"])
def test_a_file_of_weights_gives_what_was_saved(saved, ending):
    trained, model = backbone(1), backbone(2)
    report = warm_start(model, saved(trained, ending))
    assert report.left == report.skipped == []
    if ending == ".npz":
        for path, value in values_of(model).items():
            np.testing.assert_array_equal(value, values_of(trained)[path])
    else:
        independent = backbone(3)
        independent.load_weights(saved(trained, ending))
        for variable, other in zip(model.weights, independent.weights, strict=True):
            np.testing.assert_array_equal(variable.numpy(), other.numpy())


def test_an_application_is_started_from_a_file_but_for_its_head(saved):
    def application(classes):
        return keras.applications.MobileNet(
            weights=None, input_shape=(32, 32, 3), alpha=0.25, classes=classes
        )

    trained, model = application(4), application(7)
    for i, variable in enumerate(trained.weights):
        variable.assign(np.random.default_rng(i).uniform(0.1, 1, variable.shape))
    path = saved(trained, ".weights.h5")
    with pytest.raises(UserError, match=r"conv_preds/kernel is .*--warm_start_exclude=conv_preds"):
        warm_start(model, path)
    report = warm_start(model, path, exclude=["conv_preds/.*"])
    assert set(report.left) == set(report.skipped) == {"conv_preds/kernel", "conv_preds/bias"}
    assert len(report.taken) == len(model.weights) - 2
    inputs, layer = np.ones((1, 32, 32, 3)), "global_average_pooling2d"
    outputs = [
        keras.Model(n.input, [x.output for x in n.layers if x.name.startswith(layer)])(inputs)
        for n in (trained, model)
    ]
    np.testing.assert_array_equal(*outputs)


def test_a_network_that_became_a_part_of_another_is_found_in_it_and_back(saved):
    trained, inner = backbone(1), backbone(2)
    x = keras.Input((4, 3))
    model = keras.Model(x, keras.layers.Dense(2, name="own")(inner(x)))
    report = warm_start(model, saved(trained, ".weights.h5"))
    assert report.left == ["own/kernel", "own/bias"]
    for variable, other in zip(inner.weights, trained.weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), other.numpy())
    alone = backbone(3)
    report = warm_start(alone, saved(model, ".keras"))
    assert report.left == []
    assert report.skipped == ["own/0", "own/1"]
    for variable, other in zip(alone.weights, trained.weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), other.numpy())


def test_a_layer_of_a_file_can_be_renamed(saved):
    trained, model = network("body", "head"), network("trunk", "head")
    path = saved(trained, ".weights.h5")
    assert set(warm_start(model, path).skipped) == {"body/0", "body/1"}
    for names in ({"body": "trunk"}, {"body/0": "trunk/kernel", "body/1": "trunk/bias"}):
        model = network("trunk", "head")
        assert warm_start(model, path, names=names).left == []
        np.testing.assert_array_equal(
            values_of(model)["trunk/kernel"], values_of(trained)["body/kernel"]
        )


def test_a_layer_that_two_networks_have_is_not_guessed(saved):
    path = saved(network("body"), ".weights.h5")
    networks = {"generator": network("body"), "discriminator": network("body")}
    with pytest.raises(UserError, match="it holds body/0, body/1, the model discriminator/body"):
        warm_start(networks, path)
    report = warm_start(networks, path, names={"body": "generator/body"})
    assert report.taken == ["generator/body/kernel", "generator/body/bias"]


def broken(path):
    path.write_bytes(path.read_bytes()[:300])


def of_keras_2(path):
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = ["body"]
        file["body/body/kernel:0"] = np.ones((3, 3))


def without_weights(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")


def pickled(path):
    np.savez(path, body=np.array([{}], dtype=object))


@pytest.mark.parametrize(
    ("ending", "change", "message"),
    [
        (".weights.h5", broken, "no checkpoint can be read there"),
        (".weights.h5", of_keras_2, r"written by Keras 2 .* model.save_weights"),
        (".keras", broken, "no checkpoint can be read there .*not a zip file"),
        (".keras", without_weights, "no item named 'model.weights.h5'"),
        (".npz", broken, "no checkpoint can be read there .*not a zip file"),
        (".npz", pickled, "allow_pickle=False"),
        (".npz", lambda path: path.unlink(), "No such file"),
        (".pt", lambda path: path.touch(), r"no kind of file .*\.weights\.h5, \.keras or \.npz"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(saved, tmp_path, ending, change, message):
    path = tmp_path / f"saved{ending}"
    if ending != ".pt":
        saved(network("body"), ending)
    change(path)
    with pytest.raises(
        UserError, match=f"--warm_start_from={re.escape(str(path))}.*{message}"
    ) as error:
        warm_start(network("body"), str(path))
    assert "sstable" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_long_list_of_paths_is_cut(source):
    names = [f"layer_{i}" for i in range(100)]
    with pytest.raises(UserError, match=r"\.\.\. \(200 in all\)") as error:
        warm_start(network(*names), source[0])
    assert len(str(error.value)) < 500


def test_a_run_stands_for_its_newest_checkpoint(trained, checkpoint):
    values = read_source(str(trained))
    newest = checkpoint(trained, 60)
    network = {key.removeprefix("inference/") for key in newest if key.startswith("inference/")}
    assert set(values) == network
    for path, value in values.items():
        np.testing.assert_array_equal(value, newest[f"inference/{path}"])


def test_a_checkpoint_of_another_program_can_be_read(tmp_path):
    """Keras models are saved with `tf.train.Checkpoint` by most of them."""
    kernel = tf.Variable(tf.ones((3, 3)))
    path = tf.train.Checkpoint(body=tf.train.Checkpoint(kernel=kernel)).write(
        str(tmp_path / "other")
    )
    model = network("body")
    assert warm_start(model, path).taken == ["body/kernel"]
    np.testing.assert_array_equal(values_of(model)["body/kernel"], np.ones((3, 3)))


def test_arrays_in_memory_can_be_assigned():
    model = network("body")
    assign_values(model, {"body/bias": [1, 2, 3]})
    np.testing.assert_array_equal(values_of(model)["body/bias"], [1, 2, 3])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"body/bias": [0.0] * 3, "bdy/kernel": np.zeros((3, 3))}, "nearest: body/kernel"),
        ({"body/bias": [0.0] * 4}, r"body/bias has the shape \[3\], the value \[4\]"),
    ],
)
def test_arrays_that_do_not_fit_change_nothing(values, message):
    model = network("body")
    assign_values(model, {"body/bias": [1, 2, 3]})
    with pytest.raises(UserError, match=message):
        assign_values(model, values)
    np.testing.assert_array_equal(values_of(model)["body/bias"], [1, 2, 3])


@pytest.fixture
def head(prepared):
    """Paths of the variables of the project's last layer."""
    return [variable.path for variable in Model.for_dataset(prepared).network.layers[-1].variables]


@pytest.mark.slow
def test_a_run_with_repeated_flags_is_repeated_by_its_flag_file(
    command_line, trained, data_dir, tmp_path, checkpoint, head
):
    excluded = [f"--warm_start_exclude={path}" for path in head]
    assert len(excluded) > 1
    first, again = tmp_path / "first", tmp_path / "again"
    done = command_line(
        "train",
        *(f"--data_dir={data_dir}", f"--model_dir={first}", "--train_steps=10"),
        *(f"--warm_start_from={trained}", *excluded),
    )
    assert done.status == 0, done.err
    written = (first / "flags.txt").read_text().splitlines()
    assert [line for line in written if line.startswith("--warm_start_exclude=")] == excluded
    done = command_line("train", f"--flagfile={first}/flags.txt", f"--model_dir={again}")
    assert done.status == 0, done.err
    assert_same_bits(checkpoint(again, 10), checkpoint(first, 10))


@pytest.mark.parametrize("devices", ["cpu", pytest.param("cpu:2", marks=pytest.mark.slow)])
def test_a_frozen_backbone_keeps_the_bits_it_was_started_with(
    command_line, trained, data_dir, tmp_path, checkpoint, head, devices
):
    run, pattern = tmp_path / "run", "|".join(head)
    done = command_line(
        "train",
        *(f"--data_dir={data_dir}", f"--model_dir={run}", f"--devices={devices}"),
        *("--train_steps=20", "--warmup_steps=0", f"--warm_start_from={trained}"),
        *(f"--warm_start_exclude={pattern}", f"--trainable={pattern}"),
    )
    assert done.status == 0, done.err
    weights = {k: v for k, v in checkpoint(run, 20).items() if k.startswith("inference/")}
    trained_keys = {f"inference/{path}" for path in head}
    source = checkpoint(trained, 60)
    backbone = {key: value for key, value in weights.items() if key not in trained_keys}
    assert backbone
    assert_same_bits(backbone, {key: source[key] for key in backbone})
    assert all((weights[key] != source[key]).any() for key in trained_keys)
    assert json.loads((run / "manifest.json").read_text())["history"][0]["event"] == "start"
