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
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import logging

from ...vocab import vocab
from .. import batches, optimizers
from ..dataset import Dataset
from ..distribute.peers import Peers
from ..errors import UserError
from ..examples import Examples
from ..options import LoopOptions
from ..report.curves import Curves
from . import loop, numerics, steps
from .checkpoints import BEST, NEWEST, variables_of
from .profiling import Profiler
from .progress import Progress
from .protocols import Model
from .saver import Saver
from .state import DataPosition, State

STOPPED = 42
"""Exit status of a run that a signal stopped after saving: the same command goes on."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a call of ``train`` ended."""

    global_step: int
    loss: float
    error: float
    examples_per_second: float
    stopped: bool
    """Whether a signal ended it before the last step."""


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
    ) -> None:
        """Restores the newest checkpoint of the run, if there is one.

        Args:
            model: has ``inference``, ``loss``, ``optimize``, ``totals`` and ``figures``, and was made in
                ``strategy.scope()``.
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

        Raises:
            UserError: no checkpoint can be read, or it belongs to another model or other data.
        """
        self.folder = Path(model_dir)
        self.options = options
        self.batch_size = batch_size
        self.model = model
        self.strategy = strategy
        self.peers = peers or Peers(None, 0)
        variables = variables_of(model)
        writes = self.peers.is_chief
        self.saver = Saver(self.folder / NEWEST, variables, writes=writes)
        self.best = Saver(self.folder / BEST, variables, writes=writes)
        data = DataPosition(dataset.fingerprint, train_split.examples, batch_size, seed)
        with strategy.scope():
            restored = self.saver.restore()
        self.first_step = int(model.optimizer.iterations.numpy())
        self.peers.agree({"step": f"{self.folder} at step {self.first_step}"})
        self.resumed = restored is not None
        self.state = self._resume(restored, data) if restored else State(data)

        self._evaluate = steps.make_evaluate(model, strategy)
        self._validation = batches.evaluation(validation_split, strategy, batch_size=batch_size)
        # As many training examples, seen as in evaluation: what the two errors differ by is overfitting.
        examples = min(train_split.examples, validation_split.examples)
        seen = dataclasses.replace(train_split, examples=examples)
        self._seen = batches.evaluation(seen, strategy, batch_size=batch_size)
        training = batches.training(
            train_split,
            strategy,
            batch_size=batch_size,
            seed=seed,
            first_step=self.first_step,
            data_step=self.state.data.first_step,
            accumulate_steps=model.options.accumulate_steps,
            augment=augment,
        )
        self._take = steps.make_train(model, strategy, iter(training))
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
        logging.info("%s: training from step %d to %d", self.folder, self.first_step, last)
        self.curves = Curves(
            self.folder,
            self.first_step if self.resumed else None,
            writes=self.peers.is_chief,
        )
        if self._samples is not None:
            self.curves.samples(self._samples[vocab.x])
            if self.peers.is_chief:
                self.curves.graph(self.model.inference, self._samples[vocab.x])
        self._saved_step = self.first_step if self.resumed else -1
        self.progress = Progress(self.first_step, last, self.batch_size, shown=self.peers.is_chief)
        save = loop.Action(
            self.options.checkpoint_every,
            self.checkpoint,
            at_end=True,
            seconds=self.options.checkpoint_seconds,
        )
        actions = [loop.Action(self.options.evaluate_every, self.evaluate, at_end=True)]
        if self.options.summarize_gradients:
            actions.append(loop.Action(self.options.summary_every, self.summarize_gradients))
        profiler = Profiler(self.folder, self.options.profile_steps, writes=self.peers.is_chief)
        actions.append(loop.Action(0, profiler.at, at=profiler.steps))
        actions.append(save)  # last: it tells of what the others did
        with loop.stop_signals() as asked, self.progress.bar:
            step = loop.run(
                self.take_steps,
                first_step=self.first_step,
                last_step=last,
                steps_per_loop=self.options.steps_per_loop,
                actions=actions,
                agree=lambda count: self._agreed(0 if asked.is_set() else count),
            )
            profiler.close()
            if self._saved_step != step:
                self.checkpoint(step)
            self.best.wait()
            self.saver.wait()
        self.progress.tell(self._faster_input)
        stopped = step < last and not self._out_of_patience()
        if stopped:
            logging.info("%s: stopped at step %d; the same command goes on", self.folder, step)
        return self.outcome(step, self.progress.examples_per_second(), stopped)

    def outcome(
        self, step: int, examples_per_second: float = 0.0, stopped: bool = False
    ) -> Outcome:
        """Returns how a call ended that left the run at ``step``."""
        return Outcome(step, self.state.loss, self.state.error, examples_per_second, stopped)

    def take_steps(self, step: int, count: int) -> None:
        """Takes ``count`` steps after step ``step``, and writes the curves at those that are due.

        Raises:
            UserError: the loss or the gradients of a step are NaN or Inf, or a checkpoint could not be written.
        """
        self.best.check()
        self.saver.check()
        began = time.monotonic()
        try:
            rows, self._gradients = self._take(count)
        except tf.errors.InvalidArgumentError as error:
            raise numerics.explained(error) or error from None
        rows = rows.numpy()
        seconds = time.monotonic() - began
        self._refuse_nonfinite(step, rows)
        reported = dict(zip(steps.PER_STEP, rows.T, strict=True))
        self.state.loss = float(reported[vocab.loss][-1])
        waited = float(reported[vocab.input_wait].sum())
        rate = self.progress.update(step + count, count, seconds, self.state.loss, waited)
        taken = np.arange(step + 1, step + count + 1)
        due = taken % self.options.summary_every == 0
        if due.any():
            reported[vocab.examples_per_second] = np.full(count, rate, np.float32)
            self.curves.training(taken[due], {k: v[due] for k, v in reported.items()})

    def evaluate(self, step: int) -> None:
        """Evaluates the validation split, and saves the checkpoint apart if it is among the best."""
        with self.strategy.scope(), optimizers.averaged(self.model.optimizer):
            figures = self._evaluate(self._validation)
            error = self._evaluate(self._seen)[vocab.error]
        self.curves.training(np.array([step]), {vocab.error: np.array([error], np.float32)})
        scalars = {name: value for name, value in figures.items() if isinstance(value, float)}
        self.curves.evaluation(step, scalars)
        text = ", ".join(f"{name}: {value:.4f}" for name, value in scalars.items())
        logging.info("validation | step: %d, %s", step, text)
        if self.state.add_evaluation(figures[vocab.error], step, self.options.keep_best):
            self.best.save(step, self.state, [best for _, best in self.state.best])

    def summarize_gradients(self, step: int) -> None:
        """Writes histograms of the weights and of the gradients of the last step."""
        self.curves.histograms(step, self.model.network.variables, self._gradients)

    def checkpoint(self, step: int) -> None:
        """Saves the run as it is after ``step`` steps; the best that it tells of comes first."""
        self.saver.save(step, self.state, self.options.keep_checkpoints, after=self.best)
        self._saved_step = step

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

    def _refuse_nonfinite(self, step: int, rows: np.ndarray) -> None:
        bad = ~np.isfinite(rows).all(axis=1)
        if not bad.any():
            return
        row = int(bad.argmax())
        name, value = next(
            (n, v) for n, v in zip(steps.PER_STEP, rows[row], strict=True) if not np.isfinite(v)
        )
        self.saver.wait()
        self.best.wait()
        raise UserError(
            f"step {step + row + 1}: {name} became {value}; nothing was saved since: run again from the "
            "last checkpoint with a lower --learning_rate or --clip_norm"
        )
