"""What each piece of wiring costs: the real trainer with it, against a bare graph loop over the same input.

The bare loop takes batches, as early as the trainer does, and steps, and nothing else: no figures of a step, no check
for NaN, no progress. There are eight of each, which take turns: two of the same kind differ by some percent for as
long as they live.
"""

import argparse
import dataclasses
import functools
import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from contenders import NETWORKS, STRATEGY, Ours, Setting, options, prepared
from digit_classifier.engine import batches
from measuring import Bar, in_turn, report, take_turns

STEPS = 100  # what is done every 100 is done once a round
INSTANCES = 8
NEVER = 10**9


class Bare:
    """A graph loop over the input of a run."""

    def __init__(self, setting: Setting) -> None:
        """Trace it."""
        model, self.batch_size = setting.model(), setting.batch_size
        iterator = iter(
            batches.training(setting.split, STRATEGY, batch_size=setting.batch_size, seed=0)
        )

        @tf.function
        def train(batch: Any, steps: tf.Tensor) -> Any:
            for _ in tf.range(steps):
                following = next(iterator)
                model.optimize(batch["x"], batch["y"])
                batch = following
            return batch

        self._train = train
        self._batch = next(iterator)

    def round(self, steps: int) -> float:
        """Train on and return examples a second."""
        began = time.perf_counter()
        self._batch = self._train(self._batch, tf.constant(steps))
        return steps * self.batch_size / (time.perf_counter() - began)


def main() -> None:
    """Print what remains of the bare loop's throughput with each piece, and with all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(0)
    everything = options()
    without = {"checkpoint_every": NEVER, "checkpoint_seconds": float("inf")}
    pieces = {
        "figures of each step, check for NaN, progress": dataclasses.replace(
            everything, **without, summary_every=NEVER
        ),
        "these and a checkpoint every 100": dataclasses.replace(everything, summary_every=NEVER),
        "these and curves every 10": dataclasses.replace(everything, **without),
        "all of it": everything,
    }
    with tempfile.TemporaryDirectory() as folder:
        data = prepared(Path(folder) / "data", (8, 8, 1), 1_257)
        setting = Setting(data, NETWORKS["default"], 32, None, Path(folder))
        instances: dict[str, list[Any]] = {name: [] for name in ("bare", *pieces)}
        for _ in range(INSTANCES):
            instances["bare"].append(Bare(setting))
            for name, chosen in pieces.items():
                instances[name].append(Ours(setting, chosen))
        for instance in itertools.chain(*instances.values()):
            instance.round(2 * STEPS)  # traces
        contenders = {
            name: in_turn([functools.partial(instance.round, STEPS) for instance in some])
            for name, some in instances.items()
        }
        pairs = [
            (name, name, "bare", Bar(0.97) if chosen is everything else None)
            for name, chosen in pieces.items()
        ]
        report(take_turns(contenders, pairs, unit="examples/s"), arguments.output)


if __name__ == "__main__":
    main()
