import keras
import numpy as np
import pytest

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.options import OptimizerOptions
from {{ cookiecutter.__package_name }}.engine.trainable import freeze_others
from {{ cookiecutter.__package_name }}.model import Model

X = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 1)).astype(np.uint8)
Y = np.arange(8) % 10


def train_some_steps(trainable):
    """Returns the variables by path before and after three steps."""
    model = Model(
        trainable=trainable, dropout_rate=0.5, optimizer=OptimizerOptions(learning_rate=0.1)
    )
    before = {v.path: v.numpy() for v in model.network.variables}
    for _ in range(3):
        model.optimize(X, Y)
    return before, {v.path: v.numpy() for v in model.network.variables}


def changed(before, after):
    return {path for path in before if before[path].tobytes() != after[path].tobytes()}


def test_only_the_chosen_variables_change_and_frozen_statistics_stay():
    assert changed(*train_some_steps("logits/.*")) == {"logits/kernel", "logits/bias"}


def test_a_part_of_a_layer_can_be_trained():
    assert changed(*train_some_steps("dense_1/bias")) == {"dense_1/bias"}


def test_without_a_pattern_everything_changes_moving_statistics_too():
    before, after = train_some_steps("")
    assert changed(before, after) == set(before)


def test_the_statistics_of_a_trained_normalisation_move():
    assert changed(*train_some_steps("normalization_2/.*")) == {
        f"normalization_2/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")
    }


def test_the_optimizer_keeps_state_for_trained_variables_only():
    model = Model(trainable="logits/.*", optimizer=OptimizerOptions(name="momentum"))
    assert [v.path for v in model.optimizer.variables if "logits" in v.path]
    assert not [v.path for v in model.optimizer.variables if "conv" in v.path]


def test_a_pattern_without_a_match_lists_the_variables():
    x = keras.Input((2,))
    network = keras.Model(x, keras.layers.Dense(1, name="head")(x))
    with pytest.raises(UserError, match=r"--trainable=haed/\.\* .*head/kernel, head/bias"):
        freeze_others(network, "haed/.*")
