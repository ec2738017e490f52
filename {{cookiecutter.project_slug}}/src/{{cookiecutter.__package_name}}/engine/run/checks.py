"""What is refused before training, because it would train another model on several devices, or none at all.

A run of an earlier release that was trained like that goes on as it was, with a warning.
"""

import keras
from absl import logging

from .. import layers
from ..errors import UserError
from ..trainable import refuse_unmatched
from .protocols import Model
from .variables import network_variables, networks_of, optimizers_of, path

# Its update grows with the gradients; those of the others divide by their scale or take their sign.
_SCALE_DEPENDENT = keras.optimizers.SGD
_NAMED = 3  # layers in a message


def check(model: Model, *, resumed: bool) -> None:
    """Checks the layers of a model and what is done to its gradients.

    Args:
        model: to be trained.
        resumed: whether it was trained before.

    Raises:
        UserError: a layer draws by itself or keeps statistics by itself; multipliers match no variable, or those of
            gradients have no effect.
    """
    unsafe = [u for network in networks_of(model).values() for u in layers.unsafe(network)]
    if unsafe:
        more = f"; and {len(unsafe) - _NAMED} more" if len(unsafe) > _NAMED else ""
        problem = (
            f"{'; '.join(unsafe[:_NAMED])}{more}: several devices would train another model than one; use "
            "layers.for_replicas(network)"
        )
        _refuse(problem, warn=resumed)
    options = model.options
    paths = [path(key) for key, v in network_variables(model).items() if v.trainable]
    refuse_unmatched("--gradient_multipliers", options.gradient_multipliers, paths)
    refuse_unmatched("--learning_rate_multipliers", options.learning_rate_multipliers, paths)
    for optimizer in optimizers_of(model).values():
        if options.gradient_multipliers and not isinstance(optimizer, _SCALE_DEPENDENT):
            problem = (
                f"--gradient_multipliers change next to nothing with the optimizer {optimizer.name!r}, whose "
                "updates do not depend on the scale of gradients; use --learning_rate_multipliers"
            )
            is_keras = type(optimizer).__module__.partition(".")[0] == keras.__name__
            _refuse(problem, warn=resumed or not is_keras)


def _refuse(problem: str, *, warn: bool) -> None:
    if not warn:
        raise UserError(problem)
    logging.warning("%s", problem)
