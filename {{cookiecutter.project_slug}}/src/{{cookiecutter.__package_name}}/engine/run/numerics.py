"""What ``--check_numerics`` found, in one line in place of TensorFlow's hundred."""

import re

import tensorflow as tf

from ..errors import UserError

_NODE = re.compile(r"\{\{node (?:while/)?(\S+)/CheckNumericsV2\}\}")
_VALUES = re.compile(r"Tensor had (\S.*?) values")
_FRAME = re.compile(r"\+ \S*?([^/\s]+/[^/\s]+\.py) \(L(\d+)\)")


def explained(error: tf.errors.OpError) -> UserError | None:
    """Returns the error of an operation that made a NaN or Inf, in one line; None if it is another error.

    The function that raised ``error`` was traced under ``tf.debugging.enable_check_numerics``.
    """
    node, values = (pattern.search(error.message) for pattern in (_NODE, _VALUES))
    if node is None:
        return None
    package = __package__.partition(".")[0]  # and not its engine, which is a folder deeper
    frames = [f for f in _FRAME.findall(error.message) if f[0].startswith(f"{package}/")]
    at = f" (made at {frames[-1][0]}, line {frames[-1][1]})" if frames else ""
    return UserError(
        f"--check_numerics: {node[1]} made {values[1] if values else 'NaN or Inf'}{at}; nothing was "
        "saved since the last checkpoint"
    )
