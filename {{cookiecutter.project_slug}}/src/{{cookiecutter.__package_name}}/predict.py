"""Predicts new examples: ``python -m <package>.predict --model_dir=runs/baseline --input=photos``.

From Python: ``predict(model_dir="runs/baseline", input=["photos"], output="predictions.csv")``.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from absl import logging

from . import flags, run
from .engine import command
from .engine.errors import UserError
from .engine.system import startup
from .vocab import per_variable, vocab

if TYPE_CHECKING:
    import numpy as np

    from .engine.examples import Inputs

Inference = Callable[..., Mapping[str, Any]]
"""Called with the model's inputs by name, batches; returns ``{"inference": [batch, ...]}``."""
_BATCHES_AHEAD = 2  # decoded while the model is at work on one
_DECODED_TOGETHER = 16  # by a thread: to hand over one small image takes longer than to decode it


def main(_: Sequence[str]) -> None:
    """Predicts, writes ``--output`` and prints the counts."""
    command.print_result(predict_with_flags())


def predict(**settings: Any) -> dict[str, Any]:
    """Predicts, writes the file ``output``, and returns how many examples there were.

    Args:
        settings: named like the flags of this command; what is not given is as in the run.

    Raises:
        UserError: what the command would end with.
    """
    with command.settings(flags.PREDICT, settings):
        return predict_with_flags()


def predict_with_flags() -> dict[str, Any]:
    """Predicts as the flags say."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    startup.import_tensorflow()
    from tqdm import tqdm

    from .engine.system.files import replacing
    from .inputs import open_inputs

    if flags.EXPORT_DIR.value is None:
        inference, expected, classes = _from_run()
    else:
        inference, expected, classes = _from_export(flags.EXPORT_DIR.value)
    inputs = open_inputs(flags.INPUT.value, expected)
    output = Path(flags.OUTPUT.value)
    begun, predicted = time.monotonic(), 0
    with (
        replacing(output) as file,
        tqdm(total=len(inputs.names), unit="example", disable=None) as bar,
    ):
        # A file's name may hold what UTF-8 does not.
        text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="")
        write = _writer(text, classes, as_table=output.suffix == ".csv")
        for names, arrays in _batches(inputs, flags.BATCH_SIZE.value, strict=flags.STRICT.value):
            for name, row in zip(names, inference(**arrays)[vocab.inference].numpy(), strict=True):
                write(name, row)
            predicted += len(names)
            bar.update(len(names))
        if not predicted:
            raise UserError("none of the inputs can be read; see above")
        text.flush()
        text.detach()
    return {
        "output": str(output),
        vocab.examples: predicted,
        "left_out": len(inputs.names) - predicted,
        vocab.examples_per_second: predicted / (time.monotonic() - begun),
    }


def _from_run() -> tuple[Inference, dict[str, Any], list[str]]:
    """Returns what predicts, the inputs that it takes and the classes, from a run's checkpoint."""
    import tensorflow as tf

    from .engine.data import records
    from .engine.export import saved_model

    opened = run.open_with_flags()
    spec = saved_model.signature(records.specs(opened.dataset.features))[0]

    # Outside of the strategy: on one device, the first of those chosen.
    @tf.function
    def infer(**arrays: tf.Tensor) -> dict[str, tf.Tensor]:
        x = arrays if isinstance(spec, Mapping) else arrays[spec.name]
        return {vocab.inference: opened.model.inference(x)}

    specs = {spec.name: spec for spec in tf.nest.flatten(spec)}
    compiled = infer.get_concrete_function(**specs)
    return compiled, saved_model.describe(specs), opened.dataset.classes


def _from_export(export: str) -> tuple[Inference, dict[str, Any], list[str]]:
    from .engine.distribute import placement
    from .engine.export import saved_model

    placement.strategy(flags.placement_options())
    inference, signature = saved_model.load(export)
    return inference, signature["inputs"], signature["classes"]


def _batches(
    inputs: Inputs, batch_size: int, *, strict: bool
) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yields names and inputs of batches of what can be read; threads decode meanwhile."""
    import numpy as np
    import tensorflow as tf

    pool = ThreadPoolExecutor(os.cpu_count())
    readable = _readable(inputs, pool, ahead=_BATCHES_AHEAD * batch_size, strict=strict)
    try:
        while some := list(islice(readable, batch_size)):
            names, examples = zip(*some, strict=True)
            arrays = {k: np.stack([example[k] for example in examples]) for k in examples[0]}
            yield list(names), {name: tf.constant(array) for name, array in arrays.items()}
    finally:
        pool.shutdown(cancel_futures=True)


def _readable(
    inputs: Inputs, pool: Executor, *, ahead: int, strict: bool
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yields names and arrays of what can be read, in order, of which about ``ahead`` are decoded beforehand."""

    def decode(indices: range) -> list[tuple[str, dict[str, np.ndarray] | UserError]]:
        decoded: list[tuple[str, dict[str, np.ndarray] | UserError]] = []
        for index in indices:
            try:
                decoded.append((inputs.names[index], inputs.read(index)))
            except UserError as error:
                decoded.append((inputs.names[index], error))
        return decoded

    all_of_them = range(len(inputs.names))
    pieces = (all_of_them[i : i + _DECODED_TOGETHER] for i in all_of_them[::_DECODED_TOGETHER])
    begun = deque(
        pool.submit(decode, piece) for piece in islice(pieces, -(-ahead // _DECODED_TOGETHER))
    )
    while begun:
        decoded = begun.popleft().result()
        begun.extend(pool.submit(decode, piece) for piece in islice(pieces, 1))
        for name, example in decoded:
            if not isinstance(example, UserError):
                yield name, example
            elif strict:
                raise example
            else:
                logging.warning("left out: %s", example)


def _writer(
    text: TextIO, classes: Sequence[str], *, as_table: bool
) -> Callable[[str, np.ndarray], None]:
    """Returns what writes one prediction: its input's name, and what is predicted.

    That is a label and a probability by class (in a table ``inference/<class>``), a number (``inference``), or an array
    (``inference/0``, or with more dimensions ``inference/0/3``; in JSON nested lists).
    """
    import numpy as np

    from .engine.system.files import to_json

    table: Any = None

    def write(name: str, predicted: np.ndarray) -> None:
        nonlocal table
        by_class = bool(classes) and predicted.shape == (len(classes),)
        label = {vocab.label: classes[int(predicted.argmax())]} if by_class else {}
        record: dict[str, Any] = {vocab.input: name, **label}
        if not as_table:
            whole = predicted.tolist() if predicted.size > 1 else predicted.item()
            record[vocab.inference] = dict(zip(classes, whole, strict=True)) if by_class else whole
            text.write(to_json(record) + "\n")
            return
        if table is None:
            indices = np.ndindex(predicted.shape) if predicted.size > 1 else ()
            parts = classes if by_class else ["/".join(map(str, index)) for index in indices]
            columns = [per_variable(vocab.inference, part) for part in parts] or [vocab.inference]
            table = csv.writer(text, lineterminator="\n")
            table.writerow([*record, *columns])
        table.writerow([*record.values(), *(f"{value:.9g}" for value in predicted.flat)])

    return write


if __name__ == "__main__":
    command.run(main, flags.PREDICT)
