"""What is compared in training: the project's own trainer, `keras.Model.fit` and the bare compiled step."""

import contextlib
import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from digit_classifier import model as models
from digit_classifier.engine import batches, dataset, random
from digit_classifier.engine.data import preparing
from digit_classifier.engine.examples import open_split
from digit_classifier.engine.options import LoopOptions, OptimizerOptions
from digit_classifier.engine.run import loop
from digit_classifier.engine.run.trainer import Trainer

CHECKPOINT_EVERY, SUMMARY_EVERY = 100, 10
DROPOUT = 0.25
OPTIMIZER = OptimizerOptions(learning_rate=0.01, schedule="constant", warmup_steps=0, clip_norm=0.0)
STRATEGY = tf.distribute.get_strategy()


def tiny(image_shape: Any, classes: int, **_: Any) -> keras.Model:
    """Return a perceptron with one hidden layer."""
    x = keras.Input(tuple(image_shape), name="x")
    h = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(x))
    h = keras.layers.Dense(32, activation="silu")(h)
    return keras.Model(x, keras.layers.Dense(classes, name="logits")(h))


def computing(image_shape: Any, classes: int, **_: Any) -> keras.Model:
    """Return a convolutional network that computes much."""
    x = keras.Input(tuple(image_shape), name="x")
    h = keras.layers.Rescaling(1 / 255)(x)
    for filters in (32, 64, 64):
        h = keras.layers.Conv2D(filters, 3, padding="same", activation="silu")(h)
        h = keras.layers.AveragePooling2D(2)(h)
    return keras.Model(x, keras.layers.Dense(classes, name="logits")(keras.layers.Flatten()(h)))


NETWORKS = {"default": models.network, "tiny MLP": tiny, "convolutions": computing}


def prepared(
    folder: Path, shape: tuple[int, int, int], examples: int, shards: int = 4
) -> dataset.Dataset:
    """Write a data set of noise."""
    draw = np.random.default_rng(0)
    images = draw.integers(0, 255, (examples, *shape), dtype=np.uint8)
    few = np.arange(min(100, examples))
    return preparing.prepare(
        folder,
        source="noise",
        seed=0,
        features={"x": dataset.Feature("uint8", shape), "y": dataset.Feature("int64", ())},
        classes=[str(i) for i in range(10)],
        indices={"train": np.arange(examples), "validation": few, "test": few},
        read=lambda i: {"x": images[i], "y": np.int64(i % 10)},
        statistics=lambda: {"mean": [127.0] * shape[-1], "stddev": [74.0] * shape[-1]},
        shards=shards,
        overwrite=False,
    )


@dataclasses.dataclass
class Setting:
    """What all contenders have in common."""

    data: dataset.Dataset
    network: Callable[..., keras.Model]
    batch_size: int
    augment: batches.Augment | None
    folder: Path

    def __post_init__(self) -> None:
        """Open the data."""
        self.split = open_split(self.data, "train")
        models.network = self.network  # where a user would write it

    def model(self) -> models.Model:
        """Return a new model, the project's own class."""
        return models.Model.for_dataset(self.data, dropout_rate=DROPOUT, optimizer=OPTIMIZER)


class Ours:
    """A run of the project: the real trainer, with everything on; it goes on for one round at a time."""

    def __init__(self, setting: Setting, options: LoopOptions) -> None:
        """Make the trainer, which begins with the first round."""
        self.batch_size = setting.batch_size
        self.trainer = Trainer(
            setting.model(),
            strategy=STRATEGY,
            dataset=setting.data,
            train_split=setting.split,
            validation_split=open_split(setting.data, "validation"),
            model_dir=tempfile.mkdtemp(dir=setting.folder),
            batch_size=setting.batch_size,
            seed=0,
            options=dataclasses.replace(options, train_steps=10**9),
            augment=setting.augment,
        )
        self._take, self.trainer.take_steps = self.trainer.take_steps, self._counted
        self.trainer.peers.gather = self._paused  # comes before each loop of steps
        self._step = self._until = 0
        self._go, self._there = threading.Semaphore(0), threading.Semaphore(0)
        # Signals come to the main thread only.
        loop.stop_signals = lambda: contextlib.nullcontext(threading.Event())
        threading.Thread(target=self.trainer.run, daemon=True).start()
        self._there.acquire()

    def _counted(self, step: int, count: int) -> None:
        self._take(step, count)
        self._step = step + count

    def _paused(self, count: int) -> list[int]:
        if self._step >= self._until:
            self._ended = time.perf_counter()
            self._there.release()
            self._go.acquire()
            self._began = time.perf_counter()
        return [count]

    def round(self, steps: int) -> float:
        """Train on and return examples a second."""
        first = self._step
        self._until += steps
        self._go.release()
        self._there.acquire()
        return (self._step - first) * self.batch_size / (self._ended - self._began)


class Clock(keras.callbacks.Callback):
    """Notes when executions of `fit` end."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.ends: list[tuple[int, float]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Note the number of steps taken."""
        self.ends.append((batch + 1, time.perf_counter()))


class Fit:
    """`keras.Model.fit` on the same data set object, with the same periods of its callbacks."""

    def __init__(self, setting: Setting, executed: int, options: LoopOptions) -> None:
        """Make and compile the model."""
        self.options = options
        self.batch_size, self.executed, self.folder = setting.batch_size, executed, setting.folder
        pair = setting.augment or (lambda batch, *_: batch)
        self.dataset = batches.training(
            setting.split,
            STRATEGY,
            batch_size=setting.batch_size,
            seed=0,
            augment=lambda *inputs: (pair(*inputs)["x"], inputs[0]["y"]),
        )
        self.network = keras.models.clone_model(setting.model().network, clone_function=_keras_own)
        self.network.compile(
            optimizer=keras.optimizers.SGD(OPTIMIZER.learning_rate, momentum=OPTIMIZER.momentum),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            steps_per_execution=executed,
            jit_compile=False,
        )

    def round(self, steps: int) -> float:
        """Train on and return examples a second."""
        clock = Clock()
        callbacks = [
            clock,
            keras.callbacks.TensorBoard(
                tempfile.mkdtemp(dir=self.folder),
                update_freq=self.options.summary_every,
                write_graph=False,
            ),
            keras.callbacks.ModelCheckpoint(
                tempfile.mkdtemp(dir=self.folder) + "/model.keras",
                save_freq=self.options.checkpoint_every,
            ),
            keras.callbacks.TerminateOnNaN(),
        ]
        self.network.fit(
            self.dataset, steps_per_epoch=steps, callbacks=callbacks, shuffle=False, verbose=0
        )
        (first, began), (end, ended) = clock.ends[0], clock.ends[-1]
        return (end - first) * self.batch_size / (ended - began)


def _keras_own(layer: keras.layers.Layer) -> keras.layers.Layer:
    if isinstance(layer, random.Dropout):
        return keras.layers.Dropout(layer.rate, name=layer.name)
    return layer.__class__.from_config(layer.get_config())


class Floor:
    """The compiled step and nothing else, on one batch."""

    def __init__(self, setting: Setting) -> None:
        """Trace it."""
        model, self.batch_size = setting.model(), setting.batch_size
        batch = next(
            iter(
                batches.training(
                    setting.split,
                    STRATEGY,
                    batch_size=setting.batch_size,
                    seed=0,
                    augment=setting.augment,
                )
            )
        )

        @tf.function
        def train(steps: tf.Tensor) -> None:
            for _ in tf.range(steps):
                model.optimize(batch["x"], batch["y"])

        self._train = train
        train(tf.constant(2))

    def round(self, steps: int) -> float:
        """Train on and return examples a second."""
        began = time.perf_counter()
        self._train(tf.constant(steps))
        return steps * self.batch_size / (time.perf_counter() - began)


def options(
    checkpoint_every: int = CHECKPOINT_EVERY, summary_every: int = SUMMARY_EVERY
) -> LoopOptions:
    """Return everything on, but evaluation, which the others do not do either."""
    return LoopOptions(
        checkpoint_every=checkpoint_every, summary_every=summary_every, evaluate_every=10**9
    )
