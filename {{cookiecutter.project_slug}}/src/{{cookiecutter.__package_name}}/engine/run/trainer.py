"""Trains a model in the folder of a run: resumes, takes steps, evaluates, saves, writes curves.

What the folder of a run holds:

    checkpoints/ckpt-<step>.*    the newest
    best/ckpt-<step>.*           the best by validation error
    train/, validation/          event files for TensorBoard
    flags.txt                    repeats the run: train --flagfile=<run>/flags.txt --model_dir=<other>
    manifest.json                what the run was made with, and what happened to it
"""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from ...vocab import vocab
from .. import batches, summaries
from ..actions import Action, Context
from ..dataset import Dataset
from ..distribute.peers import Peers
from ..errors import UserError
from ..examples import Examples
from ..options import LoopOptions
from . import loop, numerics
from .checkpoints import BEST, NEWEST, Saver
from .checks import check
from .curves import Curves, histograms
from .evaluation import make_evaluate
from .profiling import Profiler
from .progress import Progress
from .protocols import Model
from .state import DataPosition, State
from .steps import Train
from .variables import (
    averaged,
    global_step_of,
    variables_of,
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a training ended."""

    global_step: int
    train_loss: float
    """Of the last step."""

    validation_loss: float
    """Of the last evaluation, like the next one."""

    validation_error: float
    best_error: float | None
    """The lowest validation error, None if there was no evaluation."""

    best_step: int | None
    examples_per_second: float
    stopped: bool
    """Whether a signal ended it before the last step."""

    is_chief: bool
    """Whether this is the process that writes what one has to write."""

    def result(self) -> dict[str, Any]:
        """Returns what is reported of it."""
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if k not in ("stopped", "is_chief")}


class Trainer:
    """One run: what it is made of, and what it does on which step."""

    def __init__(
        self,
        model: Model,
        *,
        strategy: tf.distribute.Strategy,
        dataset: Dataset,
        train_split: Examples,
        validation_split: Examples,
        model_dir: str,
        batch_size: int,
        seed: int,
        options: LoopOptions,
        peers: Peers | None = None,
        augment: batches.Augment | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        """Restores the newest checkpoint of the run, if there is one.

        Args:
            model: was made in ``strategy.scope()``.
            strategy: as ``placement.strategy`` returns it.
            dataset: what the splits are of.
            train_split: what to train on.
            validation_split: what decides which checkpoint is best.
            model_dir: the folder of the run.
            batch_size: examples in a step over all devices.
            seed: the run's seed.
            options: what happens when.
            peers: the processes that train together; None if this one trains alone.
            augment: varies training batches; see ``batches.training``.
            actions: what else happens, after the evaluation and before the checkpoint of a step.

        Raises:
            UserError: no checkpoint can be read, it belongs to another model or other data, or the model would
                train otherwise on several devices than on one.
        """
        self.folder = Path(model_dir)
        self.options = options
        self.batch_size = batch_size
        self.model = model
        self.strategy = strategy
        self.peers = peers or Peers(None, 0)
        self._actions = tuple(actions)
        variables = variables_of(model)
        self.saver = Saver(self.folder / NEWEST, variables)
        self.best = Saver(self.folder / BEST, variables)
        data = DataPosition(dataset.fingerprint, train_split.examples, batch_size, seed)
        with strategy.scope():
            restored = self.saver.restore()
        self.first_step = int(global_step_of(model).numpy())
        self.peers.agree({"step": f"{self.folder} at step {self.first_step}"})
        self.resumed = restored is not None
        self.state = self._resume(restored, data) if restored else State(data)
        check(model, resumed=self.resumed)

        self._evaluate = make_evaluate(model, strategy)
        self._validation = batches.evaluation(validation_split, strategy, batch_size=batch_size)
        # As many training examples, seen as in evaluation: what the two errors differ by is overfitting.
        examples = min(train_split.examples, validation_split.examples)
        seen = dataclasses.replace(train_split, examples=examples)
        self._seen = batches.evaluation(seen, strategy, batch_size=batch_size)
        self._batches = batches.training(
            train_split,
            strategy,
            batch_size=batch_size,
            seed=seed,
            first_step=self.first_step,
            data_step=self.state.data.first_step,
            accumulate_steps=model.options.accumulate_steps,
            augment=augment,
        )
        self._faster_input = batches.advice(train_split, augmented=augment is not None)
        self._samples = (
            None if restored else batches.first_examples(train_split, seed=seed, augment=augment)
        )

    @property
    def why_finished(self) -> str | None:
        """Why there is nothing left to train, None if there is."""
        if self.first_step >= self.options.train_steps:
            return "a larger --train_steps or --epochs goes on"
        if self._out_of_patience():
            return (
                f"the last {self.state.evaluations_since_best} evaluations brought no new best; "
                "a larger --early_stop_patience, or 0, goes on"
            )
        return None

    def run(self) -> Outcome:
        """Trains up to ``options.train_steps``, early stopping or a signal.

        Raises:
            UserError: a checkpoint could not be written, or the loss became NaN or Inf.
        """
        last = self.options.train_steps
        is_chief = self.peers.is_chief
        logging.info("%s: training from step %d to %d", self.folder, self.first_step, last)
        folder = self.folder if is_chief else None
        self.curves = Curves(folder, self.first_step if self.resumed else -1)
        if is_chief and self._samples is not None:
            self.curves.begin(self.model, self._samples[vocab.x])
        self._take = Train(self.model, self.strategy, iter(self._batches))
        self._saved_step = self.first_step if self.resumed else -1
        self.progress = Progress(self.first_step, last, self.batch_size, shown=is_chief)
        profiler = Profiler(self.folder, self.options.profile_steps)
        with loop.stop_signals() as asked, self.progress.bar:
            step = loop.run(
                self.take_steps,
                first_step=self.first_step,
                last_step=last,
                steps_per_loop=self.options.steps_per_loop,
                actions=self._all_actions(profiler),
                context=lambda step: Context(step, self.model, self.curves.train),
                agree=lambda count: self._agreed(0 if asked.is_set() else count),
                is_chief=is_chief,
            )
            profiler.close()
            if is_chief and self._saved_step != step:
                self.checkpoint(step)
            self.best.wait()
            self.saver.wait()
        self.progress.log_summary(self._faster_input)
        stopped = step < last and not self._out_of_patience()
        if stopped:
            logging.info("%s: stopped at step %d; the same command goes on", self.folder, step)
        return self.outcome(step, self.progress.examples_per_second(), stopped)

    def outcome(
        self, step: int, examples_per_second: float = 0.0, stopped: bool = False
    ) -> Outcome:
        """Returns how a training ended that left the run at ``step``."""
        state = self.state
        error, best = state.best[0] if state.best else (None, None)
        last = (state.loss, state.validation_loss, state.error)
        return Outcome(step, *last, error, best, examples_per_second, stopped, self.peers.is_chief)

    def take_steps(self, step: int, count: int) -> None:
        """Takes ``count`` steps after step ``step``, and writes the curves at those that are due.

        Raises:
            UserError: a scalar of a step is NaN or Inf, or a checkpoint could not be written.
        """
        self.best.check()
        self.saver.check()
        began = time.monotonic()
        try:
            rows, self._last = self._take(count)
        except tf.errors.InvalidArgumentError as error:
            raise numerics.explained(error) or error from None
        rows = rows.numpy()
        seconds = time.monotonic() - began
        names = self._take.names
        self._refuse_nonfinite(step, names, rows)
        reported = dict(zip(names, rows.T, strict=True))
        self.state.loss = float(reported[vocab.loss][-1])
        waited = float(reported[vocab.input_wait].sum()) if vocab.input_wait in reported else 0.0
        rate = self.progress.update(step + count, count, seconds, self.state.loss, waited)
        self.curves.steps(
            self.state,
            np.arange(step + 1, step + count + 1),
            reported,
            every=self.options.summary_every,
            examples_per_second=rate,
        )

    def evaluate(self, step: int) -> None:
        """Evaluates the validation split, and saves the checkpoint apart if it is among the best."""
        with self.strategy.scope(), averaged(self.model):
            metrics = self._evaluate(self._validation)
            error = self._evaluate(self._seen)[vocab.error]
        scalars = {name: value for name, value in metrics.items() if isinstance(value, float)}
        self.curves.evaluation(step, scalars, error)
        text = ", ".join(f"{name}: {value:.4f}" for name, value in scalars.items())
        logging.info("validation | step: %d, %s", step, text)
        is_best = self.state.add_evaluation(
            metrics[vocab.error], step, self.options.keep_best, metrics[vocab.loss]
        )
        if is_best and self.peers.is_chief:
            self.best.save(step, self.state, [best for _, best in self.state.best])

    def checkpoint(self, step: int) -> None:
        """Saves the run as it is after ``step`` steps; the best that it refers to comes first."""
        self.saver.save(step, self.state, self.options.keep_checkpoints, after=self.best)
        self._saved_step = step

    def _all_actions(self, profiler: Profiler) -> list[Action]:
        """Returns what happens on which steps, in this order: the checkpoint holds what the others did."""
        options = self.options
        actions = [
            Action(
                lambda context: self.evaluate(context.step),
                every_steps=options.evaluate_every,
                at_end=True,
                everywhere=True,
            ),
            *self._actions,
            Action(
                lambda context: self.checkpoint(context.step),
                every_steps=options.checkpoint_every,
                every_seconds=options.checkpoint_seconds,
                at_end=True,
            ),
        ]
        if profiler.steps:
            actions.insert(1, Action(lambda c: profiler.at(c.step), at_steps=profiler.steps))
        if options.summarize_gradients or self._take.shown:
            actions.insert(1, Action(self._show, every_steps=options.summary_every))
        return actions

    def _show(self, context: Context) -> None:
        """Writes what the last step shows, and histograms of weights and gradients if they are asked for."""
        for name, kind in self._take.shown.items():
            summaries.write(kind, name, self._last[name])
        if self.options.summarize_gradients:
            histograms(self.model, self._last)

    def _resume(self, state: State, data: DataPosition) -> State:
        """Returns the state to go on from, on the data that this run is given."""
        changes = state.go_on_with(data, self.first_step)
        if changes and not self.options.continue_on_new_data:
            raise UserError(
                f"--model_dir={self.folder}: the run was trained on other data ({'; '.join(changes)}); "
                "give what it was trained with, or --continue_on_new_data to go on from its weights"
            )
        if changes:
            logging.info("%s: goes on with new data (%s)", self.folder, "; ".join(changes))
        return state

    def _agreed(self, count: int) -> int:
        """Returns how many steps all processes take next: as many as the slowest one would, 0 if one wants to stop."""
        least = min(self.peers.gather(count))
        return 0 if self._out_of_patience() else least

    def _out_of_patience(self) -> bool:
        patience = self.options.early_stop_patience
        return 0 < patience <= self.state.evaluations_since_best

    def _refuse_nonfinite(self, step: int, names: Sequence[str], rows: np.ndarray) -> None:
        bad = ~np.isfinite(rows)
        if not bad.any():
            return
        row, column = np.argwhere(bad)[0]
        self.saver.wait()
        self.best.wait()
        raise UserError(
            f"step {step + row + 1}: {names[column]} became {rows[row, column]}; nothing was saved since: run again "
            "from the last checkpoint with a lower --learning_rate or --clip_norm"
        )
