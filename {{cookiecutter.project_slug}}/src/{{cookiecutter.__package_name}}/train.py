"""Trains the model, or goes on training it: ``python -m <package>.train --model_dir=runs/baseline``."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from absl import logging

from . import flags, task_flags
from .engine import command
from .engine.system import startup

if TYPE_CHECKING:
    from .engine.dataset import Dataset
    from .model import Model


def make_model(dataset: Dataset, train_steps: int) -> Model:
    """Returns the model that the flags describe, in the current distribution strategy."""
    from .model import Model

    return Model.for_dataset(
        dataset,
        class_weights=flags.CLASS_WEIGHTS.value,
        dropout_rate=flags.DROPOUT_RATE.value,
        optimizer=flags.optimizer_options(train_steps),
        trainable=flags.TRAINABLE.value,
        seed=flags.SEED.value,
    )


def main(_: Sequence[str]) -> int:
    """Trains; returns 0, or 42 when a signal stopped it after saving."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    startup.import_tensorflow()
    from . import data
    from .engine import dataset as datasets
    from .engine import summaries
    from .engine.distribute import cluster, placement
    from .engine.distribute.peers import Peers
    from .engine.examples import open_split
    from .engine.run.manifest import Manifest
    from .engine.run.trainer import STOPPED, Trainer
    from .engine.run.warm_start import warm_start
    from .engine.system.lock import lock_folder

    model_dir = flags.MODEL_DIR.value
    workers = cluster.find(flags.CLUSTER.value)
    with Peers(workers, flags.CLUSTER_TIMEOUT.value) as peers, contextlib.ExitStack() as held:
        dataset = datasets.load(flags.DATA_DIR.value)
        if peers.is_chief:
            held.enter_context(lock_folder(model_dir))
        peers.agree({"data": f"data with the fingerprint {dataset.fingerprint}"})
        peers.agree(command.flag_lines(flag for flag in flags.TRAIN if flag is not flags.DATA_DIR))
        strategy = placement.strategy(flags.placement_options(), workers)
        in_memory_bytes = flags.IN_MEMORY_MB.value * 2**20
        train_split = open_split(
            dataset,
            "train",
            limit=flags.LIMIT_EXAMPLES.value,
            in_memory_bytes=in_memory_bytes,
        )
        train_steps = flags.train_steps(train_split.examples)
        with strategy.scope():
            model = make_model(dataset, train_steps)
        trainer = Trainer(
            model,
            strategy=strategy,
            dataset=dataset,
            train_split=train_split,
            validation_split=open_split(dataset, "validation", in_memory_bytes=in_memory_bytes),
            model_dir=model_dir,
            batch_size=flags.BATCH_SIZE.value,
            seed=flags.SEED.value,
            options=flags.loop_options(train_steps),
            peers=peers,
            augment=data.augment if task_flags.AUGMENT.value else None,
        )
        if flags.WARM_START_FROM.value and not trainer.resumed:
            with strategy.scope():
                warm_start(
                    model.network,
                    flags.WARM_START_FROM.value,
                    include=flags.WARM_START_INCLUDE.value,
                    exclude=flags.WARM_START_EXCLUDE.value,
                    names=dict(entry.split("=") for entry in flags.WARM_START_MAP.value),
                )
        manifest = Manifest(
            model_dir,
            strategy=strategy,
            deterministic=flags.DETERMINISTIC.value,
            data=trainer.state.data,
            writes=peers.is_chief,
        )
        if trainer.why_finished:
            step = trainer.first_step
            logging.info("%s is finished at step %d: %s", model_dir, step, trainer.why_finished)
            outcome = trainer.outcome(step)
        else:
            manifest.begin(
                "resume" if trainer.resumed else "start",
                trainer.first_step,
                changed_flags=command.changed_flags(model_dir, flags.TRAIN),
            )
            if peers.is_chief:
                command.write_flags(model_dir, flags.TRAIN)
                compared = [flag for flag in flags.TRAIN if flag is not flags.MODEL_DIR]
                summaries.write_hparams(Path(model_dir), command.flag_values(compared))
            outcome = trainer.run()
        result = dataclasses.asdict(outcome)
        stopped = result.pop("stopped")
        if stopped:
            manifest.record("stop", outcome.global_step, result=result)
        else:
            manifest.finish(outcome.global_step, result)
        if peers.is_chief:
            command.print_result(result)
    return STOPPED if stopped else 0


if __name__ == "__main__":
    command.run(main, flags.TRAIN)
