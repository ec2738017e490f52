import subprocess
import sys
import threading
from typing import Any

import pytest

from {{ cookiecutter.__package_name }}.engine.actions import Action, Context
from {{ cookiecutter.__package_name }}.engine.run import loop
from {{ cookiecutter.__package_name }}.engine.summaries import Writer


def at(step: int) -> Context:
    model: Any = None
    return Context(step, model, Writer(None))


def recorded(first, last, steps_per_loop, actions, **options):
    """Runs a loop that takes no steps; returns (what was done, in order) and where it ended."""
    done: list[tuple[str, int] | tuple[str, int, int]] = []

    def action(name, every, at_end):
        return Action(
            lambda context: done.append((name, context.step)), every_steps=every, at_end=at_end
        )

    end = loop.run(
        lambda step, count: done.append(("take", step, count)),
        first_step=first,
        last_step=last,
        steps_per_loop=steps_per_loop,
        context=at,
        actions=[action(*entry) for entry in actions],
        **options,
    )
    return done, end


ACTIONS = [("evaluate", 6, True), ("save", 10, True), ("draw", 4, False)]


@pytest.mark.parametrize("steps_per_loop", [1, 2, 3, 5, 7, 50, 1000])
@pytest.mark.parametrize("first", [0, 1, 6, 17])
def test_actions_fall_on_exact_multiples_whatever_the_loop_length_and_start(first, steps_per_loop):
    done, end = recorded(first, 25, steps_per_loop, ACTIONS)
    assert end == 25
    expected = [
        (name, step)
        for step in range(first + 1, 26)
        for name, every, at_end in ACTIONS
        if step % every == 0 or (at_end and step == 25)
    ]
    assert [entry for entry in done if entry[0] != "take"] == expected


@pytest.mark.parametrize("steps_per_loop", [1, 3, 7, 50])
def test_every_step_is_taken_once_in_loops_of_at_most_the_length_asked_for(steps_per_loop):
    done, _ = recorded(3, 25, steps_per_loop, ACTIONS)
    loops = [entry[1:] for entry in done if entry[0] == "take"]
    taken = [step for start, count in loops for step in range(start, start + count)]
    assert taken == list(range(3, 25))
    assert max(count for _, count in loops) <= steps_per_loop


@pytest.mark.parametrize("steps_per_loop", [1, 7, 50])
def test_an_action_may_be_due_on_given_steps(steps_per_loop):
    done: list[int] = []
    loop.run(
        lambda step, count: None,
        first_step=4,
        last_step=30,
        steps_per_loop=steps_per_loop,
        context=at,
        actions=[Action(lambda context: done.append(context.step), at_steps=(3, 11, 20))],
    )
    assert done == [11, 20]


def test_loops_grow_as_long_as_the_actions_allow():
    done, _ = recorded(0, 37, 50, [("save", 15, False)])
    loops = [entry[1:] for entry in done if entry[0] == "take"]
    assert loops == [(0, 1), (1, 2), (3, 4), (7, 8), (15, 15), (30, 7)]


@pytest.mark.parametrize(("step_seconds", "longest"), [(0.001, 100), (0.02, 50), (0.6, 1), (7, 1)])
def test_a_loop_of_slow_steps_takes_about_a_second(step_seconds, longest):
    now, counts = [0.0], []

    def take_steps(step, count):
        counts.append(count)
        now[0] += count * step_seconds + (3 if step == 0 else 0)  # the first loop traces

    loop.run(
        take_steps,
        first_step=0,
        last_step=1_000,
        steps_per_loop=100,
        context=at,
        actions=[],
        clock=lambda: now[0],
    )
    assert max(counts) in (longest, longest - 1)  # the sum of times may be rounded up
    assert counts[:2] == [1, 1]


def test_processes_take_the_steps_that_they_agree_on():
    done, end = recorded(0, 20, 50, [("save", 8, False)], agree=lambda count: min(count, 3))
    assert [entry[2] for entry in done if entry[0] == "take"] == [1, 2, 3, 2, 3, 3, 2, 3, 1]
    assert end == 20


def test_an_action_at_the_end_is_done_once_when_the_end_is_a_multiple():
    done, _ = recorded(0, 12, 50, [("save", 6, True)])
    assert [entry for entry in done if entry[0] == "save"] == [("save", 6), ("save", 12)]


def test_nothing_is_done_when_no_step_is_left():
    assert recorded(12, 12, 5, ACTIONS) == ([], 12)
    assert recorded(13, 12, 5, ACTIONS) == ([], 13)


def test_a_stop_comes_between_two_loops_and_leaves_the_end_undone():
    asked = threading.Event()
    taken = []

    def take(step, count):
        taken.append((step, count))
        if step >= 10:
            asked.set()

    saved: list[int] = []
    end = loop.run(
        take,
        first_step=0,
        last_step=1000,
        steps_per_loop=5,
        context=at,
        actions=[Action(lambda context: saved.append(context.step), every_steps=400, at_end=True)],
        agree=lambda count: 0 if asked.is_set() else count,
    )
    assert end == 17
    assert taken == [(0, 1), (1, 2), (3, 4), (7, 5), (12, 5)]
    assert saved == []


def script(body):
    """Runs a script that sends itself signals inside `stop_signals`."""
    head = (
        "import os, signal, time\n"
        f"from {loop.__package__} import loop\n"
        "with loop.stop_signals() as asked:\n"
    )
    body = "".join(f"    {line}\n" for line in body.splitlines())
    return subprocess.run(
        [sys.executable, "-c", head + body + "print('left in order')"],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_the_first_signal_asks_to_stop_and_interrupts_nothing(name):
    done = script(f"os.kill(os.getpid(), signal.{name})\nassert asked.wait(10)")
    assert (done.returncode, done.stdout) == (0, "left in order\n"), done.stderr


@pytest.mark.parametrize(("name", "number"), [("SIGTERM", 15), ("SIGINT", 2)])
def test_the_second_signal_ends_the_process_at_once_with_128_plus_its_number(name, number):
    done = script(
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "assert asked.wait(10)\n"
        f"os.kill(os.getpid(), signal.{name})\n"
        "time.sleep(30)"
    )
    assert (done.returncode, done.stdout) == (128 + number, "")


def test_the_second_signal_does_not_wait_for_code_that_is_not_python():
    # A key derivation that takes ages stands for a graph loop: Python runs no handler meanwhile.
    done = script(
        "import hashlib, threading\n"
        "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "assert asked.wait(10)\n"
        "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2_000_000_000)"
    )
    assert done.returncode == 128 + 15


def test_handlers_are_put_back_when_the_block_ends():
    before = loop.signal.getsignal(loop.signal.SIGTERM)
    with loop.stop_signals():
        assert loop.signal.getsignal(loop.signal.SIGTERM) is not before
    assert loop.signal.getsignal(loop.signal.SIGTERM) is before


def test_an_action_is_also_done_when_it_was_not_done_for_its_seconds():
    now = [0.0]
    done: list[int] = []

    def take_steps(step, count):
        now[0] += count  # a second a step

    loop.run(
        take_steps,
        first_step=0,
        last_step=40,
        steps_per_loop=3,
        context=at,
        actions=[
            Action(lambda context: done.append(context.step), every_steps=25, every_seconds=10)
        ],
        clock=lambda: now[0],
    )
    # Loops of one step end at 1, 2, 3, ...: the first that is 10 seconds or more after the last time it was done.
    assert done == [10, 20, 25, 35]


def test_other_workers_than_the_chief_run_what_runs_everywhere_in_loops_of_the_same_lengths():
    def work(is_chief):
        loops: list[int] = []
        done: list[tuple[str, int]] = []
        loop.run(
            lambda step, count: loops.append(count),
            first_step=0,
            last_step=20,
            steps_per_loop=50,
            context=at,
            actions=[
                Action(lambda c: done.append(("all", c.step)), every_steps=9, everywhere=True),
                Action(lambda c: done.append(("chief", c.step)), every_steps=5),
            ],
            is_chief=is_chief,
        )
        return loops, done

    (loops, done), (loops_of_other, done_by_other) = work(True), work(False)
    assert loops == loops_of_other
    assert done_by_other == [("all", 9), ("all", 18)]
    assert [entry for entry in done if entry[0] == "all"] == done_by_other
    assert ("chief", 15) in done


def test_an_action_on_all_workers_cannot_depend_on_their_clocks():
    with pytest.raises(ValueError, match="every_seconds"):
        Action(print, every_seconds=10, everywhere=True)
