"""Two workers that train together against two that train alone, at the same time on the same cores.

Four processes live through all rounds, two pinned to each of two cores: a pair that shares a training through
MultiWorkerMirroredStrategy, and two that train alone. Only one pair works at a time. The pairs take turns. The figure
is the throughput of the first pair over that of the second; 1 would be no price at all for training together. No
training together can be faster than its slower core: the second row says what that alone costs, as twice the
throughput of the slower one of the two that train alone.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from measuring import Bar, Row, report, take_turns

EXAMPLES = 2_560  # of a worker in a round
SHAPE = (32, 32, 3)
CLASSES = 10


def work(core: int, workers: list[str], batch_size: int) -> None:
    """Train on EXAMPLES examples whenever a line comes in, and print the seconds that it took."""
    os.sched_setaffinity(0, {core})
    from digit_classifier.engine.system import startup

    startup.import_tensorflow()  # as train does
    import numpy as np
    import tensorflow as tf
    from contenders import NETWORKS
    from digit_classifier import model as models
    from digit_classifier.engine.distribute import placement
    from digit_classifier.engine.distribute.cluster import Cluster
    from digit_classifier.engine.options import OptimizerOptions, PlacementOptions
    from digit_classifier.engine.run import steps

    cluster = Cluster(tuple(workers), core) if workers else None
    strategy = placement.strategy(PlacementOptions(devices="cpu"), cluster)
    models.network = NETWORKS["convolutions"]
    with strategy.scope():
        optimizer = OptimizerOptions(clip_norm=1.0)
        model = models.Model(image_shape=SHAPE, classes=CLASSES, optimizer=optimizer)
    draw = np.random.default_rng(core)
    batch = {
        "x": draw.integers(0, 255, (batch_size, *SHAPE), dtype=np.uint8),
        "y": draw.integers(0, CLASSES, batch_size),
    }
    same = strategy.distribute_datasets_from_function(
        lambda _: tf.data.Dataset.from_tensors(batch).repeat()
    )
    train = steps.Train(model, strategy, iter(same))
    train(2)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        rows, _ = train(EXAMPLES // batch_size)
        rows.numpy()
        print(time.perf_counter() - began, flush=True)


def free_addresses(count: int) -> list[str]:
    """Return addresses on this machine that nothing uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def start(core: int, workers: list[str], batch: int) -> subprocess.Popen[str]:
    """Start a worker on a core."""
    arguments = ("--core", str(core), "--workers", json.dumps(workers), "--batch", str(batch))
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
    )


def seconds(pair: list[subprocess.Popen[str]]) -> list[float]:
    """Let a pair work at the same time; return what each took."""
    for worker in pair:
        print("go", file=worker.stdin, flush=True)
    return [float(worker.stdout.readline()) for worker in pair if worker.stdout]


def compare(batch: int, bar: Bar | None) -> list[Row]:
    """Start the pairs and let them take turns."""
    addresses = free_addresses(2)
    pairs = {
        "together": [start(core, addresses, batch) for core in (0, 1)],
        "alone": [start(core, [], batch) for core in (0, 1)],
    }
    for pair in pairs.values():
        for worker in pair:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n", "a worker did not start"
    slower = []

    def alone() -> float:
        rates = [EXAMPLES / s for s in seconds(pairs["alone"])]
        slower.append(2 * min(rates))
        return sum(rates)

    contenders = {
        "together": lambda: sum(EXAMPLES / s for s in seconds(pairs["together"])),
        "alone": alone,
    }
    each = f"{batch} examples each"
    [row] = take_turns(
        contenders, [(f"together, {each}: alone", "together", "alone", bar)], unit="examples/s"
    )
    bound = Row(f"the slower one alone, {each}: alone", slower, row.theirs, row.unit)
    for worker in (worker for pair in pairs.values() for worker in pair):
        worker.kill()
        worker.wait()
    return [row, bound]


def main() -> None:
    """Compare the throughputs of the pairs, for small and large steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--core", type=int, help="set for the processes that this one starts")
    parser.add_argument("--workers", type=json.loads, default=[])
    parser.add_argument("--batch", type=int)
    arguments = parser.parse_args()
    if arguments.core is not None:
        work(arguments.core, arguments.workers, arguments.batch)
        return
    report([*compare(64, Bar(0.95)), *compare(256, None)], arguments.output)


if __name__ == "__main__":
    main()
