import re
from collections.abc import Sequence
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.distribute import placement
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.options import PlacementOptions

RECIPE = Path(__file__).parents[2] / "docs" / "recipes" / "layer-on-a-device.md"


@pytest.mark.parametrize("devices", ["cpu", "cpu:1"])
def test_one_device_gets_the_default_strategy(devices):
    strategy = placement.strategy(PlacementOptions(devices=devices))
    assert strategy is tf.distribute.get_strategy()
    assert strategy.num_replicas_in_sync == 1


@pytest.mark.parametrize("devices", ["gpu", "gpu:0"])
def test_gpus_that_are_not_there_are_an_error_that_says_what_to_do(monkeypatch, devices):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    with pytest.raises(UserError, match=rf"^--devices={devices}: TensorFlow sees no GPU; install"):
        placement.strategy(PlacementOptions(devices=devices))


def test_a_gpu_that_is_not_there_is_named(monkeypatch):
    gpus = [tf.config.PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(2)]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    with pytest.raises(UserError, match=r"^--devices=gpu:1,4: there is no GPU 4; .* sees 2"):
        placement.strategy(PlacementOptions(devices="gpu:1,4"))


def test_without_a_gpu_auto_is_the_cpu(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert placement.strategy(PlacementOptions()).num_replicas_in_sync == 1


@pytest.mark.skipif(not RECIPE.exists(), reason="a recipe of image projects")
def test_the_recipe_puts_a_layer_with_its_operations_on_another_device():
    added = re.findall(r"^\+(.*)", RECIPE.read_text(encoding="utf-8"), re.MULTILINE)
    layer = "\n".join(added[added.index("class DenseOnCpu(keras.layers.Dense):") : -1])
    shown = {"keras": keras, "tf": tf, "Sequence": Sequence}
    exec(layer.replace("CPU:0", "CPU:1"), shown)
    x = keras.Input((3,))
    h = keras.layers.Dense(4, name="here")(x)
    network = keras.Model(x, shown["DenseOnCpu"](2, name="there")(h))
    kernels = [layer.kernel.value.device[-5:] for layer in network.layers[1:]]
    assert kernels == ["CPU:0", "CPU:1"]
    call = tf.function(lambda x: network(x)).get_concrete_function(tf.TensorSpec((None, 3)))
    products = [op.device[-5:] for op in call.graph.get_operations() if op.type == "MatMul"]
    assert products == ["", "CPU:1"]
