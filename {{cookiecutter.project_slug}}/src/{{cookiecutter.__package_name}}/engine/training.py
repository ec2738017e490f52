"""Trains a model in the folder of a run: resumes, takes steps, evaluates, saves, writes curves.

What the folder of a run holds:

    checkpoints/ckpt-<step>.*    the newest
    best/ckpt-<step>.*           the best by validation error
    train/, validation/          event files for TensorBoard
    flags.txt                    repeats the run: train --flagfile=<run>/flags.txt --model_dir=<other>
    manifest.json                what the run was made with, and what happened to it
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import filelock
import numpy as np
import tensorflow as tf
from absl import logging

from ..vocab import vocab
from . import batches, events, loop, steps
from .dataset import Dataset
from .errors import UserError
from .options import LoopOptions
from .progress import Progress
from .protocols import Model
from .saver import BEST, NEWEST, Saver, variables_of
from .state import DataPosition, State
from .summaries import Writer

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


@contextlib.contextmanager
def lock_folder(model_dir: str) -> Iterator[None]:
    """Makes the folder of a run and holds its lock, which the system gives back however the process ends.

    Raises:
        UserError: the folder cannot be written, or another process trains in it.
    """
    folder = Path(model_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / ".lock")
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise UserError(
            f"--model_dir={model_dir}: another process trains there; wait for it or name another"
        ) from None
    except OSError as error:
        raise UserError(
            f"--model_dir={model_dir}: cannot be written ({error.strerror}); name a folder that can"
        ) from None
    try:
        yield
    finally:
        lock.release()


class Trainer:
    """One run: what it is made of, and what it does on which step."""

    def __init__(
        self,
        model: Model,
        *,
        strategy: tf.distribute.Strategy,
        dataset: Dataset,
        train_split: batches.Split,
        validation_split: batches.Split,
        model_dir: str,
        batch_size: int,
        seed: int,
        options: LoopOptions,
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
            augment: varies training batches; see ``batches.training``.

        Raises:
            UserError: no checkpoint can be read, or it belongs to another model or other data.
        """
        self.folder = Path(model_dir)
        self.options = options
        self.batch_size = batch_size
        variables = variables_of(model)
        self.saver = Saver(self.folder / NEWEST, variables)
        self.best = Saver(self.folder / BEST, variables)
        data = DataPosition(dataset.fingerprint, train_split.examples, batch_size, seed)
        with strategy.scope():
            restored = self.saver.restore()
        self.first_step = int(model.optimizer.iterations.numpy())
        self.resumed = restored is not None
        self.state = self._resume(restored, data) if restored else State(data)

        self._take = steps.make_train(model, strategy)
        self._evaluate = steps.make_evaluate(model, strategy)
        self._validation = batches.evaluation(validation_split, strategy, batch_size=batch_size)
        self._iterator = batches.training(
            train_split,
            strategy,
            batch_size=batch_size,
            seed=seed,
            first_step=self.first_step,
            data_step=self.state.data.first_step,
            augment=augment,
        )
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
        self._open_writers()
        self.progress = Progress(self.first_step, last, self.batch_size)
        save = loop.Action(
            self.options.checkpoint_every,
            self.checkpoint,
            at_end=True,
            seconds=self.options.checkpoint_seconds,
        )
        with loop.stop_signals() as asked, self.progress.bar:
            step = loop.run(
                self.take_steps,
                first_step=self.first_step,
                last_step=last,
                steps_per_loop=self.options.steps_per_loop,
                actions=[
                    loop.Action(self.options.evaluate_every, self.evaluate, at_end=True),
                    save,
                ],
                stop=lambda: asked.is_set() or self._out_of_patience(),
            )
            if self._saved_step != step:
                self.checkpoint(step)
            self.best.wait()
            self.saver.wait()
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
            UserError: the loss or the gradients of a step are NaN or Inf.
        """
        began = time.monotonic()
        rows = self._take(self._iterator, tf.constant(count)).numpy()
        seconds = time.monotonic() - began
        self._refuse_nonfinite(step, rows)
        reported = dict(zip(steps.REPORTED, rows.T, strict=True))
        self.state.loss = float(reported[vocab.loss][-1])
        rate = self.progress.update(step + count, count, seconds, self.state.loss)
        taken = np.arange(step + 1, step + count + 1)
        due = taken % self.options.summary_every == 0
        if due.any():
            reported[vocab.examples_per_second] = np.full(count, rate, np.float32)
            self.train_writer.scalars(taken[due], {k: v[due] for k, v in reported.items()})

    def evaluate(self, step: int) -> None:
        """Evaluates the validation split, and saves the checkpoint apart if it is among the best."""
        figures = self._evaluate(self._validation)
        scalars = {name: value for name, value in figures.items() if isinstance(value, float)}
        self.validation_writer.scalars(
            np.array([step]), {k: np.array([v], np.float32) for k, v in scalars.items()}
        )
        text = ", ".join(f"{name}: {value:.4f}" for name, value in scalars.items())
        logging.info("validation | step: %d, %s", step, text)
        if self.state.add_evaluation(figures[vocab.error], step, self.options.keep_best):
            self.best.save(step, self.state, [best for _, best in self.state.best])

    def checkpoint(self, step: int) -> None:
        """Saves the run as it is after ``step`` steps; what it tells of, curves and the best, comes first."""
        self.train_writer.flush()
        self.validation_writer.flush()
        self.saver.save(step, self.state, self.options.keep_checkpoints, after=self.best)
        self._saved_step = step

    def _open_writers(self) -> None:
        for name in ("train", "validation"):
            events.drop_after(self.folder / name, self.first_step if self.resumed else -1)
        self.train_writer = Writer(self.folder / "train")
        self.validation_writer = Writer(self.folder / "validation")
        self._saved_step = self.first_step if self.resumed else -1
        if self._samples is not None:
            self.train_writer.images(self._samples[vocab.x], step=0)

    def _resume(self, state: State, data: DataPosition) -> State:
        """Returns the state to go on from, on the data that this run is given."""
        before = dataclasses.asdict(state.data)
        now = dataclasses.asdict(data) | {"first_step": state.data.first_step}
        if now == before:
            return state
        changes = [f"{k}: {before[k]} before, {now[k]} now" for k in now if now[k] != before[k]]
        if not self.options.continue_on_new_data:
            raise UserError(
                f"--model_dir={self.folder}: the run was trained on other data ({'; '.join(changes)}); "
                "give what it was trained with, or --continue_on_new_data to go on from its weights"
            )
        logging.info("%s: goes on with new data (%s)", self.folder, "; ".join(changes))
        state.data = dataclasses.replace(data, first_step=self.first_step)
        if before["fingerprint"] != data.fingerprint:  # errors on another split cannot be compared
            state.best, state.evaluations_since_best = (), 0
        return state

    def _out_of_patience(self) -> bool:
        patience = self.options.early_stop_patience
        return 0 < patience <= self.state.evaluations_since_best

    def _refuse_nonfinite(self, step: int, rows: np.ndarray) -> None:
        bad = ~np.isfinite(rows).all(axis=1)
        if not bad.any():
            return
        row = int(bad.argmax())
        name, value = next(
            (n, v) for n, v in zip(steps.REPORTED, rows[row], strict=True) if not np.isfinite(v)
        )
        self.saver.wait()
        self.best.wait()
        raise UserError(
            f"step {step + row + 1}: {name} became {value}; nothing was saved since: run again from the "
            "last checkpoint with a lower --learning_rate or --clip_norm"
        )
