"""Shows the progress of training: a bar on a terminal, a log line every ten seconds elsewhere."""

import sys
import time

from absl import logging
from tqdm import tqdm

from ...vocab import vocab

_LOG_SECONDS = 10.0
_MUCH_WAITING = 0.1
_HAND_OVER = 5e-4  # seconds a step to get a batch that is ready: much of a very short step


class Progress:
    """Counts steps and time, and shows them."""

    def __init__(
        self, first_step: int, last_step: int, batch_size: int, *, shown: bool = True
    ) -> None:
        """Starts at ``first_step`` of ``last_step``; of several workers, only the chief's is ``shown``."""
        self.bar = tqdm(
            total=last_step,
            initial=first_step,
            unit="step",
            disable=not (shown and sys.stderr.isatty()),
            dynamic_ncols=True,
        )
        self._logs = shown and self.bar.disable
        self._batch_size, self._last_step = batch_size, last_step
        self._calls = self._examples = 0
        self.seconds = self.waited = 0.0
        self._logged = time.monotonic()

    def update(
        self, step: int, count: int, seconds: float, loss: float, waited: float = 0.0
    ) -> float:
        """Adds the ``count`` steps of a call, up to ``step``, and returns their examples per second.

        They took ``seconds``, of which ``waited`` went into waiting for input; ``loss`` is that of the last.
        """
        examples = count * self._batch_size
        self._calls += 1
        if self._calls == 2:  # the first one counts only if it is alone
            self._examples, self.seconds, self.waited = 0, 0.0, 0.0
        self._examples += examples
        self.seconds += seconds
        self.waited += waited
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
        """Returns the throughput so far, without the first call, which traced, if there are others."""
        return self._examples / self.seconds if self.seconds else 0.0

    def log_summary(self, advice: str) -> None:
        """Logs the throughput and the share of time spent waiting for input; if that is large, with ``advice``."""
        if not self.seconds:
            return
        waiting = self.waited / self.seconds
        logging.info(
            "trained | %s: %.0f, waiting for input: %.1f %% of the time",
            *(vocab.examples_per_second, self.examples_per_second(), 100 * waiting),
        )
        steps = self._examples / self._batch_size
        if self.waited - steps * _HAND_OVER > _MUCH_WAITING * self.seconds:
            logging.warning("input is the bottleneck: %s", advice)
