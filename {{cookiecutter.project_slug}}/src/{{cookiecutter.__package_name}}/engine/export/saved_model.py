"""Writes a model as a SavedModel that needs no project code: it predicts, evaluates and goes on training.

It holds the three methods of the model and every variable by its checkpoint key. Layers that draw random
numbers do so by the seed, which is a constant of the graph, and the global step, which is one of the
variables: there is no other random state. The network and the optimizer are reached through the functions
alone: as attributes they would be saved a second time, and the two copies would drift apart in training.
"""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import tensorflow as tf

from ...vocab import vocab
from ..errors import UserError
from ..run.protocols import Model
from ..run.variables import global_step_of, variables_of
from ..system.files import staged, to_json, write_text
from . import restored

FOLDER = "export"
"""Folder in a run with its exports, numbered: the layout that TensorFlow Serving watches."""
SIGNATURE = "signature.json"
_SERVING = "serving_default"
_WRITING = ".writing"
_LARGEST_DIFFERENCE = 1e-6  # of what it predicts in another process, absolute and relative


class Exported(tf.Module):
    """What an export holds: a function for each method of the model, and its variables."""

    variables: Any = None  # takes the place of tf.Module's own, which leaves those of Keras 3 out

    def __init__(self, model: Model, batch: Mapping[str, Any]) -> None:
        """Makes the functions of ``model``, which was made on one device.

        Args:
            model: has ``inference``, ``loss`` and ``optimize``.
            batch: what these take, as ``records.specs`` returns it: ``x``, by column if it has any, and ``y``,
                unless the loss needs no target.
        """
        super().__init__(name="exported")
        specs = signature(batch)
        names = [spec_name for spec_name in batch if spec_name != vocab.x]

        def inference(x: Any) -> dict[str, tf.Tensor]:
            return {vocab.inference: model.inference(x)}

        def loss(x: Any, *others: Any) -> dict[str, tf.Tensor]:
            return {vocab.loss: model.loss(x, **dict(zip(names, others, strict=True)))}

        def optimize(x: Any, *others: Any) -> dict[str, tf.Tensor]:
            reported = model.optimize(x, **dict(zip(names, others, strict=True)))
            return {name: value for name, value in reported.items() if value.shape.rank == 0}

        self.inference = tf.function(inference, input_signature=specs[:1])
        self.loss = tf.function(_with_names(loss, names), input_signature=specs)
        self.optimize = tf.function(_with_names(optimize, names), input_signature=specs)
        self.variables = variables_of(model)
        # Tables that texts are looked up in; they hold no variable.
        self.preprocessing = getattr(model, "preprocessing", None)


def signature(batch: Mapping[str, Any]) -> list[Any]:
    """Returns the specs of what is in ``batch``, ``x`` first, with their names, ``x`` by column if it has any."""

    def named(name: str, spec: Any) -> Any:
        if isinstance(spec, Mapping):
            return {column: named(column, inner) for column, inner in spec.items()}
        return tf.TensorSpec(spec.shape, spec.dtype, name=name)

    others = (name for name in batch if name != vocab.x)
    return [named(name, batch[name]) for name in (vocab.x, *others)]


def _with_names(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Returns ``function(x, *others)`` as one whose further arguments have these names."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    arguments = [
        inspect.Parameter(vocab.x, kind),
        *(inspect.Parameter(name, kind, default=None) for name in names),
    ]
    function.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined]
    return function


def write(
    folder: Path,
    model: Model,
    batch: Mapping[str, Any],
    *,
    sample: Any,
    classes: Sequence[str],
    about: Mapping[str, Any],
) -> Path:
    """Writes ``folder/<n>``, ``n`` being one more than the largest there, and returns it.

    It is written beside, loaded in a fresh process and compared with the model on ``sample``, and only then
    gets its name.

    Args:
        folder: of the exports of a run.
        model: see ``Exported``; likewise ``batch``.
        batch: what the model takes.
        sample: a few inputs, as ``model.inference`` takes them.
        classes: names of the classes, empty where there are none.
        about: what else ``signature.json`` should tell.

    Raises:
        UserError: it could not be written, or it predicts something else than the model.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / ".lock", blocking=False):
            target = folder / str(max(numbers(folder), default=0) + 1)
            with staged(target, folder=folder / _WRITING) as staging:
                writing = staging / target.name
                exported = Exported(model, batch)
                served = {_SERVING: exported.inference.get_concrete_function()}
                with restored.quiet():
                    tf.saved_model.save(exported, str(writing), signatures=served)
                described = _describe(served[_SERVING], model, batch, classes) | dict(about)
                write_text(writing / SIGNATURE, to_json(described, indent=2, ensure_ascii=False))
                _check(writing, sample, exported.inference(sample))
            return target
    except filelock.Timeout:
        raise UserError(f"{folder}: another export is being written; wait until it ends") from None
    except (OSError, tf.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{folder}: the export could not be written ({reason}); make room or give access and run "
            "the command again"
        ) from None


def load(export: str) -> tuple[Callable[..., dict[str, tf.Tensor]], dict[str, Any]]:
    """Returns what predicts in an export, called with the inputs by name, and its ``signature.json``.

    Args:
        export: a folder that ``write`` returned, or the folder of several, of which the newest is taken.

    Raises:
        UserError: there is no export, or it is damaged.
    """
    path = Path(export)
    if numbers(path):
        path = path / str(numbers(path)[-1])
    try:
        described = json.loads((path / SIGNATURE).read_text(encoding="utf-8"))
        served = restored.load(str(path)).signatures[_SERVING]
        known = {k: described[k] for k in ("inputs", "outputs", "classes")}
    except FileNotFoundError:
        raise UserError(
            f"--export_dir={export}: no {SIGNATURE} there; name a folder that `export` wrote"
        ) from None
    except (OSError, ValueError, LookupError, TypeError, tf.errors.OpError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"--export_dir={export}: damaged or not whole ({reason}); export the run again"
        ) from None
    return served, known


def numbers(folder: Path) -> list[int]:
    """Returns the numbers of the exports in ``folder``, in rising order."""
    if not folder.is_dir():
        return []
    return sorted(int(p.name) for p in folder.iterdir() if re.fullmatch(r"[1-9]\d*", p.name))


def describe(tensors: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the dtype and shape of tensors, or of their specs, by name, as ``signature.json`` holds them."""
    return {
        name: {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
        for name, spec in sorted(tensors.items())
    }


def _describe(
    served: Any, model: Model, batch: Mapping[str, Any], classes: Sequence[str]
) -> dict[str, Any]:
    """Returns what a client in another language has to know."""
    x, *y = signature(batch)
    return {
        "inputs": describe({spec.name: spec for spec in tf.nest.flatten(x)}),
        "targets": describe({spec.name: spec for spec in y}),
        "outputs": describe(served.structured_outputs),
        "classes": list(classes),
        "functions": [vocab.inference, vocab.loss, vocab.optimize],
        vocab.global_step: int(global_step_of(model).numpy()),
    }


def _check(export: Path, sample: Any, expected: Mapping[str, tf.Tensor]) -> None:
    """Compares what the export predicts in a fresh process, which does not know this package."""
    by_name = sample if isinstance(sample, Mapping) else {vocab.x: sample}
    arrays: dict[str, Any] = {name: _plain(tensor) for name, tensor in by_name.items()}
    inputs, outputs = export / ".inputs.npz", export / ".outputs.npz"
    np.savez(inputs, **arrays)
    done = subprocess.run(
        # -P: without the folder of the script, which is that of this package
        [sys.executable, "-P", restored.__file__, str(export), str(inputs), str(outputs)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.splitlines() or [f"exit status {done.returncode}"])[-1]
        raise UserError(f"the export cannot be used in a fresh process ({last}); it was deleted")
    with np.load(outputs) as found:
        for name, tensor in expected.items():
            difference = np.abs(found[name] - tensor)
            if not (difference <= _LARGEST_DIFFERENCE * (1 + np.abs(tensor))).all():
                raise UserError(
                    f"the export's {name} differs by {difference.max():.1e} from the checkpoint's; it "
                    "was deleted"
                )
    inputs.unlink()
    outputs.unlink()


def _plain(tensor: Any) -> np.ndarray:
    """Returns an array that ``np.load`` reads without pickle: strings as such, not as objects."""
    array = np.asarray(tensor)
    return np.char.decode(array.astype(bytes), "utf-8") if array.dtype == object else array
