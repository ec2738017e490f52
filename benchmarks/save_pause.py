"""How long a save keeps training waiting: asynchronous against synchronous, on states of 1, 16 and 160 MB.

uv run --project build/digit-classifier python benchmarks/save_pause.py

The pause is the time from the end of one graph loop to the beginning of the next. The second figure adds what the next
loop took longer than usual while the thread was still writing, on the machine's cores.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf
from digit_classifier.engine import optimizers
from digit_classifier.engine.options import OptimizerOptions
from digit_classifier.engine.saver import Saver
from digit_classifier.engine.state import DataPosition, State

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
    """Print a line for each size: medians in milliseconds, and the median of the ratios of each round."""
    print("state MB | synchronous ms | asynchronous ms | ratio | with the next loop's delay")
    for megabytes in MEGABYTES:
        with tempfile.TemporaryDirectory() as folder:
            pauses, extras, waits = measure(megabytes, Path(folder))
        ratio = statistics.median(p / w for p, w in zip(pauses, waits, strict=True))
        rounds = zip(pauses, extras, waits, strict=True)
        delayed = statistics.median((p + e) / w for p, e, w in rounds)
        print(
            f"{megabytes} | {statistics.median(waits) * 1e3:.1f} | "
            f"{statistics.median(pauses) * 1e3:.2f} | {ratio:.3f} | {delayed:.3f}"
        )


if __name__ == "__main__":
    main()
