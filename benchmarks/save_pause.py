"""How long a save keeps training waiting: asynchronous against synchronous, on states of 1, 16 and 160 MB.

The pause is the time from the end of one graph loop to the beginning of the next. The second figure adds what the next
loop took longer than usual while the thread was still writing, on the machine's cores.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf
from digit_classifier.engine import optimizers
from digit_classifier.engine.options import OptimizerOptions
from digit_classifier.engine.run.checkpoints import Saver
from digit_classifier.engine.run.state import DataPosition, State
from measuring import Bar, Row, report

MEGABYTES = (1, 16, 160)
LAYERS = 8
BATCH = 8
STEPS = 5
ROUNDS = 9
STATE = State(DataPosition("none", examples=1, batch_size=BATCH, seed=0))


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(megabytes: int, folder: Path) -> tuple[list[float], list[float], list[float]]:
    """Return, for each round, the asynchronous pause, the extra time of the next loop and the synchronous pause."""
    values = megabytes * 2**20 / 4 / 2  # float32; half of the state is momentum
    width = round((values / LAYERS) ** 0.5)
    network = keras.Sequential(
        [
            keras.Input((width,)),
            *[keras.layers.Dense(width, use_bias=False, name=f"dense_{i}") for i in range(LAYERS)],
        ]
    )
    optimizer = optimizers.build(OptimizerOptions(learning_rate=1e-6), network.trainable_variables)
    variables = {v.path: v.value for v in [*network.variables, *optimizer.variables]}
    saver = Saver(folder, variables)
    x = tf.random.stateless_normal((BATCH, width), seed=(0, 0))

    @tf.function
    def train() -> None:
        for _ in tf.range(STEPS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(network(x) ** 2)
            weights = [v.value for v in network.trainable_variables]
            optimizer.apply(tape.gradient(loss, weights))

    def synchronous(step: int) -> None:
        saver.save(step, STATE, keep=2)
        saver.wait()

    train()
    pauses, extras, waits = [], [], []
    for step in range(ROUNDS):
        usual = statistics.median(seconds(train) for _ in range(3))
        pauses.append(seconds(lambda step=step: saver.save(2 * step, STATE, keep=2)))
        extras.append(max(0.0, seconds(train) - usual))
        saver.wait()
        waits.append(seconds(lambda step=step: synchronous(2 * step + 1)))
        train()
    return pauses, extras, waits


def main() -> None:
    """Compare the pauses, and the pauses with what the next graph loop took longer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows = []
    for megabytes in MEGABYTES:
        with tempfile.TemporaryDirectory() as folder:
            pauses, extras, waits = measure(megabytes, Path(folder))
        bar = Bar(0.1, at_most=True) if megabytes == MEGABYTES[-1] else None
        delayed = [pause + extra for pause, extra in zip(pauses, extras, strict=True)]
        rows += [
            Row(f"{megabytes} MB: synchronous save", pauses, waits, "s", bar),
            Row(f"{megabytes} MB, with the next loop's delay", delayed, waits, "s"),
        ]
    report(rows, arguments.output)


if __name__ == "__main__":
    main()
