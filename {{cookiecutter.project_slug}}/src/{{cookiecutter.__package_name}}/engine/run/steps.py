"""The compiled function of training: many steps in one call, traced once."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from ...vocab import per_variable, vocab
from .. import summaries
from ..errors import UserError
from .protocols import Model, check_features, is_old
from .variables import variables_of

REDUCED = (vocab.loss, vocab.gradient_norm, vocab.learning_rate)
"""What ``gradients.minimize`` reports of the whole batch; other scalars are averaged over replicas here."""

_OF_THE_ENGINE = {vocab.error, vocab.examples_per_second, vocab.input_wait, vocab.x}
_CARRIED = (
    tf.float32,
    tf.float64,
    tf.int32,
    tf.int64,
)  # by a collective; small numbers fit into float32


class Train:
    """Takes steps in a graph loop on the batches of an iterator.

    The batch after the last is taken as well, for the step that follows: it comes while a step is computed.
    """

    names: tuple[str, ...]
    """Of the scalars that are known of every step."""

    shown: dict[str, str]
    """What the model shows beside them: the kind by name, see ``summaries.write``."""

    def __init__(self, model: Model, strategy: tf.distribute.Strategy, iterator: Any) -> None:
        """Traces the step.

        Raises:
            UserError: the model's step is wrong: see ``gradients.minimize``.
        """
        self._model, self._strategy = model, strategy
        self._iterator = iterator
        self._upcoming: Any = None
        self._timed = _has_clock()
        self.names, self.shown = (), {}
        if not is_old(model):
            check_features(model.optimize, iterator.element_spec)
        try:
            step = tf.function(self._step).get_concrete_function(iterator.element_spec)
        except UserError as error:  # AutoGraph puts a stack trace before the message
            raise UserError(str(error).rpartition("UserError: ")[2].strip()) from None
        self._refuse_unsaved(step)
        self._take = tf.function(self._loop(step)).get_concrete_function(
            iterator.element_spec, tf.TensorSpec([], tf.int32)
        )

    def __call__(self, steps: int) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Takes so many steps; returns the scalars of each, ``[steps, names] float32``, and all else of the last."""
        batch = next(self._iterator) if self._upcoming is None else self._upcoming
        self._upcoming, rows, last = self._take(batch, tf.constant(steps))
        return rows, last

    def _step(self, batch: Any) -> tuple[Any, dict[str, Any]]:
        with tf.name_scope(vocab.optimize):
            row, others = self._strategy.run(self._replica_step, args=(batch,))
        first = self._strategy.experimental_local_results
        return first(row)[0], {name: first(value)[0] for name, value in others.items()}

    def _optimize(self, batch: dict[str, Any]) -> Any:
        if is_old(self._model):
            return self._model.optimize(batch[vocab.x], batch.get(vocab.y))
        return self._model.optimize(**batch)

    def _replica_step(self, batch: dict[str, Any]) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        with summaries.receiving() as shown:
            reported = self._optimize(batch)
        if not isinstance(reported, Mapping) or vocab.loss not in reported:
            raise UserError(
                f"the model's optimize returns no {vocab.loss!r}: return what gradients.minimize returns"
            )
        own: dict[str, Any] = {
            n: tf.reduce_mean(v) for n, (kind, v) in shown.items() if kind == "scalar"
        }
        for name in own.keys() & reported.keys() | {*own, *reported} & _OF_THE_ENGINE:
            raise UserError(
                f"{name!r} is a curve already: give what the model reports another name"
            )
        reported = {
            name: tf.convert_to_tensor(value) for name, value in {**reported, **own}.items()
        }
        gradient = per_variable(vocab.gradient, "")
        scalars = {
            k: tf.cast(v, tf.float32) for k, v in reported.items() if not k.startswith(gradient)
        }
        for name, value in scalars.items():
            if value.shape.rank:
                raise UserError(
                    f"optimize returns {name!r} of the shape {value.shape}: return scalars, and show others with "
                    "summaries.write"
                )
        replica = tf.distribute.get_replica_context()
        if replica.num_replicas_in_sync > 1:
            more = {name: value for name, value in scalars.items() if name not in REDUCED}
            if more:
                scalars |= replica.all_reduce(tf.distribute.ReduceOp.MEAN, more)
        others = {name: value for name, value in reported.items() if name not in scalars}
        for name, (kind, value) in shown.items():
            if kind != "scalar":
                others[name] = _joined(replica, name, value)
        self.names = (*scalars, *([vocab.input_wait] if self._timed else []))
        self.shown = {name: kind for name, (kind, _) in shown.items() if kind != "scalar"}
        return tf.stack(list(scalars.values())), others

    def _refuse_unsaved(self, step: Any) -> None:
        """Refuses a step that trains or changes a variable which no checkpoint holds."""
        local = self._strategy.experimental_local_results
        saved = {id(p) for v in variables_of(self._model).values() for p in (v, *local(v))}
        inside = {id(outside): placeholder for outside, placeholder in step.graph.captures}
        for variable in step.graph.variables:
            uses = inside[id(variable.handle)].consumers() if id(variable.handle) in inside else []
            is_changed = any(op.type != "ReadVariableOp" for op in uses)
            if id(variable) not in saved and (variable.trainable or is_changed):
                raise UserError(
                    f"the step depends on the variable {variable.name.partition(':')[0]!r}, which is in no checkpoint: "
                    "make it a weight of a layer of `network` or `networks`; an optimizer is made by "
                    "optimizers.prepare, and is `optimizer` or in `optimizers`"
                )

    def _loop(self, step: Any) -> Callable[[Any, tf.Tensor], tuple[Any, tf.Tensor, Any]]:
        iterator, timed, width = self._iterator, self._timed, len(self.names)
        _, specs = step.structured_outputs

        def take(batch: Any, steps: tf.Tensor) -> tuple[Any, tf.Tensor, dict[str, tf.Tensor]]:
            rows = tf.TensorArray(tf.float32, size=steps, element_shape=[width])
            last = {name: tf.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
            for i in tf.range(steps):
                following = next(iterator)  # while the step is computed
                row, last = step(batch)
                if timed:
                    row = tf.concat([row, [_seconds_between(row, following)]], axis=0)
                rows = rows.write(i, row)
                batch = following
            return batch, rows.stack(), last

        return take


def _joined(replica: tf.distribute.ReplicaContext, name: str, value: tf.Tensor) -> tf.Tensor:
    """Returns what all replicas show, in their order; of texts, which no collective carries, the first one's."""
    if not value.shape.is_fully_defined() or not value.shape.rank:
        raise UserError(
            f"summaries.write: {name} has the shape {value.shape}, not a known [n, ...]"
        )
    replicas = replica.num_replicas_in_sync
    if replicas == 1 or value.dtype == tf.string:
        return value
    carried = value.dtype if value.dtype in _CARRIED else tf.float32
    joined = replica.all_gather(tf.cast(value, carried), axis=0)
    return tf.cast(
        tf.ensure_shape(joined, [replicas * value.shape[0], *value.shape[1:]]), value.dtype
    )


def _has_clock() -> bool:
    """Returns whether steps can read the time, which they cannot with ``--deterministic``."""
    try:
        tf.timestamp()
    except tf.errors.OpError:
        return False
    return True


def _seconds_between(one: Any, other: Any) -> tf.Tensor:
    """Returns how long after ``one`` there is ``other``, about 0 if it is there before, scalar float32."""
    with tf.control_dependencies(tf.nest.flatten(one, expand_composites=True)):
        began = tf.timestamp()
    with tf.control_dependencies([began, *tf.nest.flatten(other, expand_composites=True)]):
        return tf.cast(tf.timestamp() - began, tf.float32)
