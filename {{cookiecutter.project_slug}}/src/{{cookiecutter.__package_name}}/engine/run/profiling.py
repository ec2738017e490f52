"""A profile of some steps: what ran when, on which device, and what waited for what.

TensorBoard shows it with the package ``xprof``: ``uv run --with xprof tensorboard --logdir=runs``.
"""

from pathlib import Path

import tensorflow as tf
from absl import logging


class Profiler:
    """Records the steps after the first of two given ones, up to the second. It is an action of the chief."""

    def __init__(self, folder: Path, steps: tuple[int, ...]) -> None:
        """Records into ``folder``; nothing where ``steps`` is empty."""
        self.steps = steps
        self._folder = folder
        self._is_recording = False

    def at(self, step: int) -> None:
        """Starts or ends the recording; called after each of ``steps``."""
        if step == self.steps[0]:
            tf.profiler.experimental.start(str(self._folder))
            self._is_recording = True
        else:
            self.close()

    def close(self) -> None:
        """Ends the recording, if there is one: training may end or stop within it."""
        if self._is_recording:
            self._is_recording = False
            tf.profiler.experimental.stop()
            logging.info("%s: profile written to plugins/profile", self._folder)
