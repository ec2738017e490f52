"""The training loop of the host: takes steps in graph loops and runs actions on the steps that they are due.

Graph loops shorten so that one ends wherever an action is due: when actions happen depends on neither
``steps_per_loop`` nor on where a run was stopped and resumed. They also shorten where steps are slow, so that a signal
never waits for long.
"""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..actions import Action, Context, perform

_LOOP_SECONDS = 1.0  # a longer loop would win nothing


def run(
    take_steps: Callable[[int, int], None],
    *,
    first_step: int,
    last_step: int,
    steps_per_loop: int,
    actions: Sequence[Action],
    context: Callable[[int], Context],
    agree: Callable[[int], int] = lambda count: count,
    is_chief: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Takes steps until ``last_step``, or until told to stop, and returns the number of steps taken.

    Args:
        take_steps: called as ``take_steps(steps taken so far, how many to take now)``.
        first_step: steps that were already taken when the run was resumed.
        last_step: where training ends.
        steps_per_loop: the most steps to take in one call. The first takes one, the next twice as many and so on, while
            it takes less than a second.
        actions: run in this order wherever several fall on one step.
        context: from the number of steps taken to what the actions get.
        agree: asked before each call: from how many steps this process would take to how many all
            processes that train together take; 0 to stop.
        is_chief: whether all actions run here; on other workers only those that run everywhere, but loops end on
            the same steps.
        clock: returns seconds.
    """
    step = first_step
    longest = 1
    done = [clock()] * len(actions)
    while step < last_step and (agreed := agree(longest)):
        ahead = [steps for action in actions for steps in action.steps_ahead(step)]
        count = min(agreed, last_step - step, *ahead)
        began = clock()
        take_steps(step, count)
        step += count
        in_a_second = int(_LOOP_SECONDS * count / max(clock() - began, 1e-9))
        longest = min(steps_per_loop, 2 * longest, max(1, in_a_second))
        for i, action in enumerate(actions):
            if not (is_chief or action.everywhere):
                continue
            is_last = action.at_end and step == last_step
            if action.is_due(step) or is_last or clock() - done[i] >= action.every_seconds:
                perform(action, context(step))
                done[i] = clock()
    return step


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yields an event that SIGTERM or SIGINT sets; a second signal ends the process with 128 + its number.

    A thread watches, since Python runs handlers only between calls: the second signal must not wait for a
    graph loop to end.
    """
    asked = threading.Event()
    receive, send = socket.socketpair()
    send.setblocking(False)

    def watch() -> None:
        while number := receive.recv(1):
            if number[0] not in handlers:  # one that the program handles in some other way
                continue
            if asked.is_set():
                os._exit(128 + number[0])
            asked.set()

    handlers: dict[int, Any] = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)
    }
    wakeup = signal.set_wakeup_fd(send.fileno())
    threading.Thread(target=watch, name="signals", daemon=True).start()
    try:
        yield asked
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        send.close()  # ends the thread
