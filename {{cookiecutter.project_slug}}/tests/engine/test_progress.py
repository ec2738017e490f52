import io

import pytest

from {{ cookiecutter.__package_name }}.engine.run import progress
from {{ cookiecutter.__package_name }}.engine.run.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar_with_steps_and_loss(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    shown = Progress(20, 100, batch_size=32)
    with shown.bar:
        shown.update(60, 40, seconds=2.0, loss=0.12345)
        shown.bar.refresh()
    assert "60/100" in terminal.getvalue()
    assert "loss=0.1235" in terminal.getvalue() or "loss=0.1234" in terminal.getvalue()
    assert "step/s" in terminal.getvalue()


def test_elsewhere_there_is_a_line_now_and_then(monkeypatch, caplog, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    caplog.set_level("INFO", logger="absl")
    shown = Progress(0, 100, batch_size=32)
    for step in range(10, 101, 10):
        now[0] += 4.0
        shown.update(step, 10, seconds=4.0, loss=1 / step)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        f"train | step: {step} of 100, loss: {1 / step:.4f}, examples_per_second: 80"
        for step in (30, 60, 90)
    ]
    assert capsys.readouterr().err.count("\r") == 0


def test_throughput_leaves_out_the_call_that_traces():
    shown = Progress(0, 100, batch_size=32)
    assert shown.update(10, 10, seconds=40.0, loss=0.0) == pytest.approx(8)
    assert shown.update(20, 10, seconds=2.0, loss=0.0) == pytest.approx(160)
    assert shown.update(40, 20, seconds=6.0, loss=0.0) == pytest.approx(107, abs=1)
    assert shown.examples_per_second() == pytest.approx(30 * 32 / 8)


def test_a_run_of_a_single_call_has_a_throughput_too():
    shown = Progress(0, 10, batch_size=32)
    shown.update(10, 10, seconds=2.0, loss=0.0)
    assert shown.examples_per_second() == pytest.approx(160)


def test_the_summary_says_how_long_steps_waited_for_input_and_what_to_do_about_it(caplog):
    caplog.set_level("INFO", logger="absl")
    shown = Progress(0, 100, batch_size=32)
    shown.update(10, 10, seconds=40.0, loss=0.0, waited=30.0)
    shown.update(20, 10, seconds=2.0, loss=0.0, waited=0.02)
    shown.log_summary("do this")
    shown.update(30, 10, seconds=2.0, loss=0.0, waited=1.98)
    shown.log_summary("do this")
    assert [record.getMessage() for record in caplog.records] == [
        "trained | examples_per_second: 160, waiting for input: 1.0 % of the time",
        "trained | examples_per_second: 160, waiting for input: 50.0 % of the time",
        "input is the bottleneck: do this",
    ]


def test_very_short_steps_do_not_count_as_waiting_for_input(caplog):
    shown = Progress(0, 2_000, batch_size=32)
    shown.update(1_000, 1_000, seconds=4.0, loss=0.0)
    shown.update(2_000, 1_000, seconds=0.3, loss=0.0, waited=0.2)
    shown.log_summary("do this")
    assert caplog.records == []
