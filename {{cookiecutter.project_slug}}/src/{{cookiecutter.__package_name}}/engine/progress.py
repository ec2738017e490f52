"""Shows how training goes: a bar on a terminal, a log line now and then elsewhere."""

import sys
import time

from absl import logging
from tqdm import tqdm

from ..vocab import vocab

_LOG_SECONDS = 10.0


class Progress:
    """Counts steps and time, and shows them."""

    def __init__(
        self, first_step: int, last_step: int, batch_size: int, *, shown: bool = True
    ) -> None:
        """Begins at ``first_step`` of ``last_step``; of several processes that train together, one shows it."""
        self.bar = tqdm(
            total=last_step,
            initial=first_step,
            unit="step",
            disable=not (shown and sys.stderr.isatty()),
            dynamic_ncols=True,
        )
        self._logs = shown and self.bar.disable
        self._batch_size = batch_size
        self._last_step = last_step
        self._examples = 0
        self._seconds = 0.0
        self._calls = 0
        self._logged = time.monotonic()

    def update(self, step: int, count: int, seconds: float, loss: float) -> float:
        """Takes in that ``count`` steps, up to ``step``, took ``seconds``; returns examples per second."""
        examples = count * self._batch_size
        self._calls += 1
        if self._calls == 2:  # the first one, which also traced, counts only if it is alone
            self._examples, self._seconds = 0, 0.0
        self._examples += examples
        self._seconds += seconds
        self.bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
        self.bar.update(count)
        now = time.monotonic()
        if self._logs and now - self._logged >= _LOG_SECONDS:
            self._logged = now
            logging.info(
                "train | step: %d of %d, %s: %.4f, %s: %.0f",
                *(step, self._last_step, vocab.loss, loss),
                *(vocab.examples_per_second, examples / seconds),
            )
        return examples / seconds

    def examples_per_second(self) -> float:
        """Returns the throughput so far, without the first call if there are others."""
        return self._examples / self._seconds if self._seconds else 0.0
