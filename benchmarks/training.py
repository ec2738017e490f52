"""Training with everything on, against keras.Model.fit and against the bare compiled step.

Everything on: a checkpoint every 100 steps, curves every 10, the check for NaN, progress; where steps are slow, so
often that each round of some seconds has them. fit has TensorBoard, ModelCheckpoint and TerminateOnNaN with the
same periods; tuned, the number of steps an execution that was fastest. All have the same data set object, network,
optimizer and batch; the bare step has one batch, again and again. Rounds of ours are parts of one run; each of fit is
a call, of which the first execution is left out, as are the ends of its epochs. Of ours and of the bare step there
are three, which take turns.
"""

import argparse
import functools
import tempfile
from pathlib import Path

import keras
import tensorflow as tf
from contenders import (
    CHECKPOINT_EVERY,
    NETWORKS,
    Fit,
    Floor,
    Ours,
    Setting,
    options,
    prepared,
)
from digit_classifier import data as task
from measuring import Bar, Pair, Row, in_turn, report, take_turns, write

EXECUTIONS = (10, 50, 100)
ROUND_SECONDS = 1.5
INSTANCES = 3
CALIBRATIONS = 3


def compare(name: str, setting: Setting, bars: dict[str, Bar | None]) -> list[Row]:
    """Return the rows of one setting."""
    floors = [Floor(setting) for _ in range(INSTANCES)]
    affordable = round(floors[0].round(10) / setting.batch_size * ROUND_SECONDS / 10) * 10
    every = min(CHECKPOINT_EVERY, max(10, affordable))
    steps = max(2, affordable // every) * every
    chosen = options(every, every // 10)
    ours = [Ours(setting, chosen) for _ in range(INSTANCES)]
    default = Fit(setting, 1, chosen)
    tuned = {}
    for executed in (n for n in EXECUTIONS if 2 * n <= steps):
        candidate = Fit(setting, executed, chosen)
        candidate.round(2 * executed)
        rates = sorted(candidate.round(steps) for _ in range(CALIBRATIONS))
        tuned[rates[CALIBRATIONS // 2]] = candidate
    best = tuned[max(tuned)]
    for contender in (*ours, *floors, default):  # the first hundreds of steps take longer
        contender.round(steps)
    contenders = {
        "ours": in_turn([functools.partial(run.round, steps) for run in ours]),
        "fit": lambda: default.round(steps),
        "tuned fit": lambda: best.round(steps),
        "bare step": in_turn([functools.partial(floor.round, steps) for floor in floors]),
    }
    pairs: list[Pair] = [
        (f"{name}: fit", "ours", "fit", bars["fit"]),
        (f"{name}: fit, {best.executed} steps an execution", "ours", "tuned fit", bars["tuned"]),
        (f"{name}: bare step", "ours", "bare step", bars.get("bare")),
    ]
    return take_turns(contenders, pairs, unit="examples/s")


def main() -> None:
    """Compare on every network, batch size, and once with augmentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", default="", help="settings whose name holds this")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(0)
    tf.get_logger().setLevel("ERROR")  # each round's writer is traced, as it should be
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        small = prepared(Path(folder) / "small", (8, 8, 1), 1_257)
        large = prepared(Path(folder) / "large", (32, 32, 3), 1_257)
        cases = [
            (network, size, augment)
            for network in NETWORKS
            for size in (32, 128, 512)
            for augment in ((None, task.augment) if (network, size) == ("default", 32) else (None,))
        ]
        for network, size, augment in cases:
            name = f"{network}, batch {size}{', augmented' if augment else ''}"
            if arguments.only not in name:
                continue
            data = large if network == "convolutions" else small
            setting = Setting(data, NETWORKS[network], size, augment, Path(folder))
            fast = size == 32 and network != "convolutions" and augment is None
            bars: dict[str, Bar | None] = {
                "fit": Bar(2.0 if fast else 0.98),
                "tuned": Bar(1.15 if fast else 0.98),
                "bare": Bar(0.9) if fast and network == "default" else None,
            }
            rows += compare(name, setting, bars)
            if arguments.output:
                write(rows, arguments.output)  # it takes long: keep what there is
    report(rows, arguments.output)


if __name__ == "__main__":
    main()
