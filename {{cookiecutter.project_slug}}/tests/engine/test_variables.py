import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.run import checkpoints
from {{ cookiecutter.__package_name }}.engine.run.variables import variables_of
from {{ cookiecutter.__package_name }}.model import Model


@pytest.fixture(scope="module")
def model(prepared):
    return Model.for_dataset(prepared)


def test_keys_are_vocabulary_names_and_layer_paths(tmp_path, model):
    variables = variables_of(model)
    checkpoints.write(tmp_path / "ckpt-0", checkpoints.snapshot(variables))
    keys = {name for name, _ in tf.train.list_variables(str(tmp_path / "ckpt-0"))}
    inference = {key.removeprefix("inference/") for key in keys if key.startswith("inference/")}
    optimizer = {key for key in keys if key.startswith("optimizer/")}
    assert inference == {variable.path for variable in model.network.variables}
    assert len(optimizer) == len(model.network.trainable_variables)
    assert keys == {f"inference/{key}" for key in inference} | optimizer | {"global_step"}


def test_no_two_variables_share_a_key(model):
    count = len(model.network.variables) + len(model.optimizer.variables)
    assert len(variables_of(model)) == count
