"""Uses an export where this project is not installed: copy this file, it needs TensorFlow alone.

    model = load("runs/baseline/export/1")
    model.inference(x)["inference"]      # predictions, for raw inputs and any batch size
    model.loss(x, y)["loss"]             # the loss of each example
    model.optimize(x, y)                 # one more training step, on from the run's own state
    model.variables["global_step"]       # every variable by its name, the optimizer's too

From a terminal, with inputs in a NumPy archive: ``python restored.py <export> inputs.npz predictions.npz``.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


def load(export: str) -> Any:
    """Returns the model in the folder of an export: ``inference``, ``loss``, ``optimize``, ``variables``."""
    with quiet():  # it warns of gradients of gradients, which are not saved; first ones are
        return tf.saved_model.load(export)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences TensorFlow's warnings about its own parts."""
    logger = logging.getLogger("absl")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def get_graph(function: Any) -> tf.Graph:
    """Returns the graph of a function of the model, such as ``model.inference``."""
    return function.concrete_functions[0].graph


def get_tensor(graph: tf.Graph, name: str) -> tf.Tensor:
    """Returns what was named in the code with ``tf.identity(..., name=name)``, or an input.

    Raises:
        KeyError: the graph has no operation of this name.
    """
    return graph.get_tensor_by_name(f"{name}:0")


def run(function: Any, fetches: Sequence[str], feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Runs a part of a function: from the values fed to the tensors fetched, both by name.

    Args:
        function: of the model, such as ``model.inference``.
        fetches: names of the tensors to return; intermediate ones, too.
        feeds: a value by the name of its tensor; one for an intermediate tensor takes its place, and what
            leads up to it is not computed.
    """
    concrete = function.concrete_functions[0]
    held = concrete.captured_inputs  # the variables
    values = {t.name: v for t, v in zip(concrete.inputs[-len(held) :], held, strict=True)}
    for name, value in feeds.items():
        values[f"{name}:0"] = tf.constant(value, get_tensor(concrete.graph, name).dtype)

    @tf.function
    def part() -> list[tf.Tensor]:
        return tf.graph_util.import_graph_def(
            concrete.graph.as_graph_def(),
            input_map={name: tf.raw_ops.Identity(input=value) for name, value in values.items()},
            return_elements=[f"{name}:0" for name in fetches],
        )

    return {name: tensor.numpy() for name, tensor in zip(fetches, part(), strict=True)}


def main(export: str, inputs: str, predictions: str) -> None:
    """Predicts what is in the archive ``inputs``; its arrays are named like the model's inputs."""
    serve = load(export).signatures["serving_default"]
    with np.load(inputs) as arrays:
        outputs = serve(**{name: tf.constant(array) for name, array in arrays.items()})
    np.savez(predictions, **{name: tensor.numpy() for name, tensor in outputs.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
