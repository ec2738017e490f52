"""Batches for the devices; the global batch of step s is a pure function of (data, seed, s).

Position p of step s is position ``g = s * batch_size + p`` in one endless sequence: example ``g % n`` of a
permutation of the split that is drawn anew from (seed, ``g // n``) for each pass. The permutation is
computed one index at a time, so that nothing is shuffled in a buffer, saved in a checkpoint or replayed on a
resume: the first batch of step 1,000,000 costs what the first of step 0 costs. Every example is seen exactly
once in a pass. A replica computes and reads its own positions only.
"""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..vocab import vocab
from .data.structures import cut
from .errors import UserError
from .examples import Batch, Examples

Augment = Callable[[Batch, int, tf.Tensor, tf.Tensor], Batch]

_SHUFFLE_ROUNDS = 4  # of the block cipher behind the permutation; TensorFlow's default
# Batches fetched at once: as many as this, if they are small. A call costs what some hundred examples cost.
_MOST_TOGETHER, _BYTES_TOGETHER = 16, 2**20


def training(
    split: Examples,
    strategy: tf.distribute.Strategy,
    *,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    data_step: int = 0,
    accumulate_steps: int = 1,
    augment: Augment | None = None,
) -> Any:
    """Returns the training batches from ``first_step`` on, without end, as a distributed dataset.

    Args:
        split: what to train on.
        strategy: its replicas share each batch, in their order.
        batch_size: examples in a step over all replicas.
        seed: the run's seed.
        first_step: number of steps already taken.
        data_step: step at which this data was begun.
        accumulate_steps: number of micro-batches that ``gradients.minimize`` takes a batch in. Each is a run of
            positions in the global batch, of which a replica gets its share.
        augment: called as ``augment(batch, seed, step, first)``; ``first`` is the position in the global batch
            of the first example in ``batch``.

    Raises:
        UserError: the replicas and micro-batches do not divide the batch.
    """
    share = _share(batch_size, strategy, accumulate_steps)
    size = accumulate_steps * share
    together = max(1, min(_MOST_TOGETHER, _BYTES_TOGETHER // (size * split.example_bytes)))

    def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        replicas = context.num_replicas_in_sync
        local = replicas // context.num_input_pipelines

        def first_positions(part: tf.Tensor) -> tf.Tensor:
            """Where in the global batch each run of ``part`` begins, ``[..., accumulate_steps]``."""
            replica = context.input_pipeline_id * local + part % local
            runs = tf.range(accumulate_steps, dtype=tf.int64) * replicas
            return (runs + replica[..., tf.newaxis]) * share

        def fetch(part: tf.Tensor) -> Batch:
            parts = part + tf.range(together, dtype=tf.int64)
            starts = (parts // local - data_step) * batch_size
            runs = starts[:, tf.newaxis] + first_positions(parts)
            positions = runs[..., tf.newaxis] + tf.range(share, dtype=tf.int64)
            return split.fetch(shuffled(tf.reshape(positions, [-1]), split.examples, seed))

        def vary(part: tf.Tensor, batch: Batch) -> Batch:
            assert augment is not None
            firsts = tf.unstack(first_positions(part), accumulate_steps)
            runs = cut(batch, accumulate_steps)
            varied = [
                augment(run, seed, part // local, first)
                for run, first in zip(runs, firsts, strict=True)
            ]
            return tf.nest.map_structure(lambda *some: tf.concat(some, axis=0), *varied)

        counter = tf.data.Dataset.counter(first_step * local, together)
        parts = counter.map(fetch, num_parallel_calls=tf.data.AUTOTUNE)
        parts = parts.rebatch(size, drop_remainder=True)  # there is none
        if augment is not None:
            counter = tf.data.Dataset.counter(first_step * local)
            parts = tf.data.Dataset.zip(counter, parts)
            parts = parts.map(vary, num_parallel_calls=tf.data.AUTOTUNE)
        # Else workers ask each other before each step whether there is another batch.
        endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        return parts.apply(endless).prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(pipeline)


def shuffled(positions: tf.Tensor, examples: int, seed: int) -> tf.Tensor:
    """Returns the indices of the examples at ``positions`` of the endless shuffled sequence, ``[count] int64``.

    Args:
        positions: ``[count] int64``.
        examples: number of examples in the split.
        seed: the run's seed.
    """
    passes = positions // examples
    keys = tf.stack([tf.fill(tf.shape(positions), tf.constant(seed, tf.int64)), passes, passes], 1)
    return tf.raw_ops.RandomIndexShuffle(
        index=positions % examples,
        seed=keys,
        max_index=tf.constant(examples - 1, tf.int64),
        rounds=_SHUFFLE_ROUNDS,
    )


def first_examples(
    split: Examples, *, seed: int, augment: Augment | None, count: int = 16
) -> Batch:
    """Returns the first ``count`` examples of step 0 as the model gets them."""
    zero = tf.constant(0, tf.int64)
    batch = split.fetch(shuffled(tf.range(count, dtype=tf.int64), split.examples, seed))
    return augment(batch, seed, zero, zero) if augment else batch


def evaluation(split: Examples, strategy: tf.distribute.Strategy, *, batch_size: int) -> Any:
    """Returns the split in order, once, as a distributed dataset.

    The last batch is filled up with copies of the last example whose ``weight`` is 0, so that every batch
    has the same shape and no replica goes without.

    Raises:
        UserError: the replicas do not divide the batch.
    """
    share = _share(batch_size, strategy)
    batches = math.ceil(split.examples / batch_size)

    def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        local = context.num_replicas_in_sync // context.num_input_pipelines

        def part(index: tf.Tensor) -> Batch:
            first = (context.input_pipeline_id * local + index % local) * share
            positions = index // local * batch_size + first + tf.range(share, dtype=tf.int64)
            batch = split.fetch(tf.minimum(positions, split.examples - 1))
            if vocab.weight in batch:
                raise UserError(
                    f"a feature of the data cannot be called {vocab.weight!r}: rename it"
                )
            return {**batch, vocab.weight: tf.cast(positions < split.examples, tf.float32)}

        parts = tf.data.Dataset.range(batches * local)
        return parts.map(part, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(pipeline)


def advice(split: Examples, *, augmented: bool) -> str:
    """Returns which flag to turn when training waits for its batches."""
    if not split.in_memory:
        needed = split.examples * split.example_bytes
        return f"--in_memory_mb={math.ceil(needed / 2**20)} keeps it in memory"
    if augmented:
        return "--noaugment shows what varying the examples costs"
    return "a larger --batch_size brings more examples at a time"


def _share(batch_size: int, strategy: tf.distribute.Strategy, accumulate_steps: int = 1) -> int:
    """Returns how many examples of a micro-batch one replica gets."""
    replicas = strategy.num_replicas_in_sync
    parts = replicas * accumulate_steps
    if batch_size % parts:
        among = f"{replicas} devices" if replicas > 1 else ""
        steps = f"--accumulate_steps={accumulate_steps}" if accumulate_steps > 1 else ""
        raise UserError(
            f"--batch_size={batch_size} cannot be divided among {' times '.join(filter(None, (among, steps)))}; "
            f"use a multiple of {parts}, such as {math.ceil(batch_size / parts) * parts}"
        )
    return batch_size // parts
