"""Random numbers by position in the global batch, so that devices and stops do not change training.

Every draw is a pure function of (seed, step, purpose, position of the example in the global batch). Philox
is a counter-based generator: a replica that holds examples 32 to 63 of a batch starts the counter at
example 32 and draws just its slice of what one device would have drawn. Nothing has to be saved, either.

Philox: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import contextlib
import math
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

_PHILOX = 1
_VALUES_PER_COUNT = 4  # Philox4x32 gives four values for each count
_SCRAMBLE = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: spreads neighbouring seeds over the key space

_draws = threading.local()  # replicas are traced in threads of their own


def uniform(
    seed: int, purpose: str, step: tf.Tensor, first: tf.Tensor, shape: list[Any]
) -> tf.Tensor:
    """Returns ``shape[0]`` examples' uniform draws from [0, 1), ``shape`` float32.

    Args:
        seed: the run's seed.
        purpose: what the draws are for; draws for different purposes are independent.
        step: global step, scalar integer.
        first: position in the global batch of the first example, scalar integer.
        shape: ``[examples, ...]``; all but the first are Python integers.
    """
    values = math.prod(shape[1:])
    counts = -(-values // _VALUES_PER_COUNT)
    mixed = (seed * _SCRAMBLE + zlib.crc32(purpose.encode())) % 2**64
    signed = mixed - 2**64 if mixed >= 2**63 else mixed
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(
        seed=tf.stack([tf.constant(signed, tf.int64), tf.cast(step, tf.int64)])
    )
    start = tf.cast(first, tf.uint64) * tf.constant(counts, tf.uint64)
    counter += tf.stack([start, tf.zeros_like(start)])
    drawn = tf.raw_ops.StatelessRandomUniformV2(
        shape=[shape[0], counts * _VALUES_PER_COUNT], key=key, counter=counter, alg=_PHILOX
    )
    return tf.reshape(drawn[:, :values], shape)


@contextlib.contextmanager
def draws(seed: int, step: tf.Tensor, first: tf.Tensor) -> Iterator[None]:
    """Within it, layers that draw do so for these examples of this step.

    Args:
        seed: the run's seed.
        step: global step, scalar integer.
        first: position in the global batch of the first example that the layers see.
    """
    outer = getattr(_draws, "current", None)
    _draws.current = (seed, step, first)
    try:
        yield
    finally:
        _draws.current = outer


def draw(purpose: str, shape: list[Any]) -> tf.Tensor:
    """Returns uniform draws from [0, 1) for the examples of the current training step, ``shape`` float32.

    Layers and losses call it; ``gradients.minimize`` says which step and which examples these are.

    Args:
        purpose: what the draws are for; a layer takes its path.
        shape: ``[examples, ...]``; all but the first are Python integers.
    """
    current = getattr(_draws, "current", None)
    if current is None:
        raise RuntimeError(
            f"{purpose} draws random numbers in training: call it in random.draws(...)"
        )
    seed, step, first = current
    return uniform(seed, purpose, step, first, shape)


@keras.saving.register_keras_serializable(package="engine")
class Dropout(keras.layers.Layer):
    """Dropout whose mask does not depend on the number of devices; use it in place of Keras's.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", JMLR 2014.
    """

    def __init__(
        self, rate: float, noise_shape: Sequence[int | None] | None = None, **kwargs: Any
    ) -> None:
        """Drops a share of ``rate`` of the activations in training.

        Args:
            rate: in [0, 1).
            noise_shape: shape of the mask, as in Keras: None is the size of the input, 1 shares the mask along an
                axis. The first axis, that of the examples, is None.
            kwargs: those of every layer.
        """
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be in [0, 1), not {rate}")
        if noise_shape is not None and noise_shape[0] is not None:
            raise ValueError(
                f"noise_shape={noise_shape}: examples share no mask; its first entry is None"
            )
        self.rate = rate
        self.noise_shape = noise_shape
        self.supports_masking = True

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns ``inputs`` (``[batch, ...]``), in training with activations dropped and the rest scaled."""
        if not training or self.rate == 0:
            return inputs
        sizes = list(inputs.shape[1:])
        if self.noise_shape is not None:
            sizes = [
                s if n is None else n for n, s in zip(self.noise_shape[1:], sizes, strict=True)
            ]
        drawn = draw(self.path, [tf.shape(inputs)[0], *sizes])
        kept = tf.cast(drawn >= self.rate, inputs.dtype)
        return inputs * kept / (1 - self.rate)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "rate": self.rate, "noise_shape": self.noise_shape}
