"""Trains the model, or goes on training it: ``python -m <package>.train --model_dir=runs/baseline``.

From Python: ``train(model_dir="runs/slower", learning_rate=0.01)``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import logging

from . import flags, run, task_flags
from .engine import command
from .engine.system import startup
from .vocab import vocab

if TYPE_CHECKING:
    from .engine.run.trainer import Outcome


def main(_: Sequence[str]) -> int:
    """Trains; returns 0, or 42 when a signal stopped it after saving."""
    outcome = train_with_flags()
    if outcome.is_chief:
        # Names that were unclear; they go with the next release.
        old = {vocab.loss: outcome.train_loss, vocab.error: outcome.validation_error}
        command.print_result(outcome.result() | old)
    return command.STOPPED if outcome.stopped else 0


def train(**settings: Any) -> Outcome:
    """Trains in the folder ``model_dir``, or goes on from its newest checkpoint.

    Args:
        settings: named like the flags of this command, and checked like them; what is not given has its default.

    Raises:
        UserError: what the command would end with.
    """
    with command.settings(flags.TRAIN, settings):
        return train_with_flags()


def train_with_flags() -> Outcome:
    """Trains as the flags say."""
    # TensorFlow is imported only after the flags are parsed, so that --help answers at once.
    startup.import_tensorflow()
    from . import actions, data
    from .engine import summaries
    from .engine.distribute import cluster, placement
    from .engine.distribute.peers import Peers
    from .engine.run.manifest import Manifest
    from .engine.run.trainer import Trainer
    from .engine.run.variables import networks_of
    from .engine.run.warm_start import warm_start
    from .engine.system.lock import lock_folder

    model_dir = flags.MODEL_DIR.value
    workers = cluster.find(flags.CLUSTER.value)
    with Peers(workers, flags.CLUSTER_TIMEOUT.value) as peers, contextlib.ExitStack() as held:
        dataset = data.open_dataset(flags.DATA_DIR.value)
        if peers.is_chief:
            held.enter_context(lock_folder(model_dir))
        peers.agree({"data": f"data with the fingerprint {dataset.fingerprint}"})
        peers.agree(command.flag_lines(flag for flag in flags.TRAIN if flag is not flags.DATA_DIR))
        strategy = placement.strategy(flags.placement_options(), workers)
        in_memory = {"in_memory_bytes": flags.IN_MEMORY_MB.value * 2**20}
        with strategy.scope():
            model = run.make_model(dataset)
        trainer = Trainer(
            model,
            strategy=strategy,
            dataset=dataset,
            train_split=data.open_split(
                dataset, "train", limit=flags.LIMIT_EXAMPLES.value, **in_memory
            ),
            validation_split=data.open_split(dataset, "validation", **in_memory),
            model_dir=model_dir,
            batch_size=flags.BATCH_SIZE.value,
            seed=flags.SEED.value,
            options=flags.loop_options(run.train_steps(dataset)),
            peers=peers,
            augment=data.augment if task_flags.AUGMENT.value else None,
            actions=actions.actions(),
        )
        if flags.WARM_START_FROM.value and not trainer.resumed:
            with strategy.scope():
                warm_start(
                    networks_of(model),
                    flags.WARM_START_FROM.value,
                    include=flags.WARM_START_INCLUDE.value,
                    exclude=flags.WARM_START_EXCLUDE.value,
                    names=dict(entry.split("=") for entry in flags.WARM_START_MAP.value),
                )
        manifest = None
        if peers.is_chief:
            manifest = Manifest(
                model_dir,
                strategy=strategy,
                deterministic=flags.DETERMINISTIC.value,
                data=trainer.state.data,
            )
        if trainer.why_finished:
            step = trainer.first_step
            logging.info("%s is finished at step %d: %s", model_dir, step, trainer.why_finished)
            outcome = trainer.outcome(step)
        else:
            if manifest:
                manifest.begin(
                    "resume" if trainer.resumed else "start",
                    trainer.first_step,
                    changed_flags=command.changed_flags(model_dir, flags.TRAIN),
                )
                command.write_flags(model_dir, flags.TRAIN)
                compared = [flag for flag in flags.TRAIN if flag is not flags.MODEL_DIR]
                summaries.write_hparams(Path(model_dir), command.flag_values(compared))
            outcome = trainer.run()
        if manifest and outcome.stopped:
            manifest.record("stop", outcome.global_step, result=outcome.result())
        elif manifest:
            manifest.finish(outcome.global_step, outcome.result())
    return outcome


if __name__ == "__main__":
    command.run(main, flags.TRAIN)
