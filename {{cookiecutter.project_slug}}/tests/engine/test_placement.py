import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import placement
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.options import PlacementOptions


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
