from types import SimpleNamespace

import keras
import pytest

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.run.checks import check

import plain


def model(optimizer, layer=None, **options):
    x = keras.Input([4])
    network = keras.Model(x, (layer or keras.layers.Dense(4, name="dense"))(x))
    return SimpleNamespace(network=network, optimizer=optimizer, options=plain.options(**options))


def test_multipliers_of_gradients_are_refused_where_they_change_nothing(caplog):
    multipliers = ((".*", 0.1),)
    check(model(keras.optimizers.SGD(), gradient_multipliers=multipliers), resumed=False)
    check(model(keras.optimizers.Adam()), resumed=False)
    assert caplog.text == ""
    adam = model(keras.optimizers.Adam(), gradient_multipliers=multipliers)
    with pytest.raises(UserError, match=r"'adam\w*'.*--learning_rate_multipliers"):
        check(adam, resumed=False)
    check(adam, resumed=True)
    assert "--learning_rate_multipliers" in caplog.text


@pytest.mark.parametrize("kind", ["gradient_multipliers", "learning_rate_multipliers"])
def test_a_multiplier_that_matches_nothing_is_refused(kind):
    unmatched = model(keras.optimizers.SGD(), **{kind: (("conv_9/.*", 0.1),)})
    with pytest.raises(UserError, match=rf"--{kind}: conv_9/\.\* matches no trained variable"):
        check(unmatched, resumed=True)


@pytest.mark.parametrize(
    "layer",
    [
        keras.layers.Dropout(0.5, name="drop"),
        keras.layers.BatchNormalization(name="norm"),
        keras.layers.GaussianNoise(0.1, name="noise"),
    ],
    ids=lambda layer: layer.name,
)
def test_layers_that_would_differ_between_devices_are_refused_by_name(layer, caplog):
    bad = model(keras.optimizers.SGD(), layer)
    with pytest.raises(UserError, match=rf"{layer.name}.*layers\.for_replicas"):
        check(bad, resumed=False)
    check(bad, resumed=True)  # a run of an earlier release goes on
    assert layer.name in caplog.text
