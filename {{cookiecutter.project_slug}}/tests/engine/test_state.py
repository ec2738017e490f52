import math

import numpy as np
import pytest

from {{ cookiecutter.__package_name }}.engine.run.state import DataPosition, State

DATA = DataPosition(fingerprint="f00", examples=100, batch_size=10, seed=3)


def test_the_lowest_errors_are_the_best_and_the_earlier_wins_a_tie():
    state = State(DATA)
    errors = {10: 0.5, 20: 0.3, 30: 0.4, 40: 0.3, 50: 0.9}
    kept = {step: state.add_evaluation(error, step, keep=2) for step, error in errors.items()}
    assert kept == {10: True, 20: True, 30: True, 40: True, 50: False}
    assert state.best == ((0.3, 20), (0.3, 40))
    assert state.error == 0.9


def test_evaluations_without_a_new_best_are_counted_until_there_is_one():
    state = State(DATA)
    counts = []
    for step, error in enumerate([0.5, 0.6, 0.5, 0.4, 0.45]):
        state.add_evaluation(error, step, keep=2)
        counts.append(state.evaluations_since_best)
    assert counts == [0, 1, 2, 0, 1]


def test_a_state_keeps_all_its_bits_as_text():
    state = State(DATA, loss=0.1)
    state.add_evaluation(1 / 3, 20, keep=2, loss=0.7)
    state.add_evaluation(0.1 + 0.2, 2**40, keep=2, loss=1 / 7)
    assert State.from_json(state.to_json()) == state
    assert State.from_json(state.to_json().encode()) == state


def test_a_state_before_the_first_evaluation_can_be_saved_too():
    again = State.from_json(State(DATA).to_json())
    assert again.best == ()
    assert again.data == DATA
    assert math.isnan(again.error)
    assert math.isnan(again.loss)


def test_a_state_of_the_last_release_is_read():
    text = (
        '{"data": {"fingerprint": "f00", "examples": 100, "batch_size": 10, "seed": 3, "first_step": 0}, '
        '"loss": 0.5, "error": 0.25, "best": [[0.25, 20]], "evaluations_since_best": 1}'
    )
    state = State.from_json(text)
    assert (state.best, state.sums, state.summed) == (((0.25, 20),), {}, 0)


@pytest.mark.parametrize("lengths", [[12], [1] * 12, [5, 4, 3]])
def test_curves_are_means_since_the_last_point_wherever_loops_and_stops_were(lengths):
    rows = np.random.default_rng(0).normal(size=[12, 2]).astype(np.float32)
    taken = np.arange(1, 13)
    state, means, start = State(DATA), [], 0
    for length in lengths:
        state = State.from_json(state.to_json())  # as after a kill
        part = slice(start, start + length)
        means.append(state.add_steps(["a", "b"], rows[part], taken[part] % 5 == 0))
        start += length
    expected = [rows[:5].astype(np.float64).mean(0), rows[5:10].astype(np.float64).mean(0)]
    assert np.concatenate(means) == pytest.approx(np.array(expected), rel=1e-6)
    assert state.sums["b"] == float(rows[10, 1]) + float(rows[11, 1])
    assert state.summed == 2


def test_an_error_that_is_no_number_is_never_the_best():
    state = State(DATA)
    assert not state.add_evaluation(float("nan"), 10, 1)
    assert state.add_evaluation(0.9, 20, 1)
    assert not state.add_evaluation(float("inf"), 30, 1)
    assert state.best == ((0.9, 20),)
    assert state.evaluations_since_best == 1
