"""Layers that behave alike on one replica and on several: a Keras network is converted to them, or refused by name."""

from itertools import zip_longest
from typing import Any

import keras

from . import random
from .errors import UserError
from .trainable import layers_by_path

_DROPOUTS = (
    keras.layers.Dropout,
    keras.layers.SpatialDropout1D,
    keras.layers.SpatialDropout2D,
    keras.layers.SpatialDropout3D,
)
_RATES = ("rate", "dropout", "recurrent_dropout")
_INSTEAD = (
    "take it out, or make it of BatchNormalization(synchronized=True) and of layers that draw by engine.random, as "
    "random.Dropout does"
)


def for_replicas(network: keras.Model) -> keras.Model:
    """Returns a copy of a network whose training does not depend on the number of replicas.

    Its batch normalisation is synchronised, and its dropout draws by the position of an example in the global batch.
    Layers, their names, weights, and what of them is trained stay as they are, also in networks inside the network.

    Args:
        network: functional or sequential, such as those of ``keras.applications``; it is not changed. Call this in the
            strategy's scope, as where the network is made.

    Raises:
        UserError: a layer that depends on the number of replicas cannot be converted.
    """
    try:
        copy = keras.models.clone_model(network, clone_function=_converted, recursive=True)
    except ValueError as error:
        raise UserError(
            f"network {network.name!r} ({type(network).__name__}) cannot be copied layer by layer "
            f"({str(error).splitlines()[0]}); {_INSTEAD}"
        ) from None
    layers = [layer for _, layer in layers_by_path(copy)]
    for layer in layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = True
    if found := unsafe(copy):
        raise UserError(f"{'; '.join(found[:5])}: cannot be converted; {_INSTEAD}")
    for old, new in zip_longest(network.weights, copy.weights):
        if getattr(old, "path", "nothing") != getattr(new, "path", "nothing"):
            raise UserError(
                f"network {network.name!r}: a copy has {getattr(new, 'path', 'nothing')} in place of "
                f"{getattr(old, 'path', 'nothing')}; give layers inside of layers names; or {_INSTEAD}"
            )
    for (_, old), new in zip(layers_by_path(network), layers, strict=True):
        _copy_values(old, new)
    for before, after in zip(network.weights, copy.weights, strict=True):
        after.trainable = before.trainable
    return copy


def unsafe(network: keras.Layer) -> list[str]:
    """Returns the layers that would train another model on several replicas than on one, each with the reason."""
    found = {
        id(layer): f"layer {name!r} ({type(layer).__name__}): {reason}"
        for name, layer in [(network.name, network), *layers_by_path(network)]
        if (reason := _reason(layer))
    }
    return list(found.values())


def _reason(layer: keras.Layer) -> str:
    if isinstance(layer, keras.layers.BatchNormalization):
        # One that is not trainable runs in inference mode.
        safe = layer.synchronized or not layer.trainable
        return "" if safe else "its statistics are not synchronised over replicas"
    rates = [getattr(layer, name) for name in _RATES if hasattr(layer, name)]
    if layer._seed_generators and (not rates or any(rates)):  # Keras has no public list of them
        return "draws by itself, so that each replica draws the same"
    return ""


def _converted(layer: Any) -> Any:
    """Returns a new layer for one of a network."""
    if not isinstance(layer, keras.layers.Layer) or isinstance(layer, keras.layers.Lambda):
        return layer  # has no variables
    try:
        if type(layer) in _DROPOUTS:
            copy = random.Dropout(
                layer.rate, _noise_shape(layer), name=layer.name, dtype=layer.dtype_policy
            )
            copy.supports_masking = True
            return copy
        return type(layer).from_config(_unbuilt(layer.get_config()))
    except (ValueError, TypeError, NotImplementedError) as error:
        raise UserError(
            f"layer {layer.name!r} ({type(layer).__name__}): cannot be made anew from its configuration "
            f"({str(error).strip().splitlines()[0]}); {_INSTEAD}"
        ) from None


def _unbuilt(config: Any) -> Any:
    """Leaves out that a layer in a layer is built: built on its own, its variables would have other paths."""
    if isinstance(config, list):
        return [_unbuilt(part) for part in config]
    if not isinstance(config, dict):
        return config
    return {key: _unbuilt(part) for key, part in config.items() if key != "build_config"}


def _noise_shape(layer: keras.layers.Dropout) -> list[int | None] | None:
    """Returns the shape of the mask: that of spatial dropout is 1 on all axes but examples and channels."""
    if type(layer) is keras.layers.Dropout:
        return layer.noise_shape
    ones: list[int | None] = [1] * (layer.input_spec.ndim - 2)
    first = getattr(layer, "data_format", "channels_last") == "channels_first"
    return [None, None, *ones] if first else [None, *ones, None]


def _copy_values(old: keras.Layer, new: keras.Layer) -> None:
    """Copies what Keras would save: a normalisation also computes what follows from its variables."""
    values: dict[str, Any] = {}
    old.save_own_variables(values)
    if values:
        new.load_own_variables(
            {k: v.numpy() if isinstance(v, keras.Variable) else v for k, v in values.items()}
        )
