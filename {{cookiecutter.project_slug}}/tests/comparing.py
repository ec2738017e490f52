"""Assertions that several test modules share."""

import numpy as np


def assert_same_bits(first, second):
    """Two checkpoints, arrays by key, are equal bit for bit."""
    assert first.keys() == second.keys()
    for key in first:
        assert np.asarray(first[key]).tobytes() == np.asarray(second[key]).tobytes(), key


def assert_one_line_error(done, *parts):
    """A command ended with status 1 and one line that holds all parts."""
    assert done.status == 1
    assert "Traceback" not in done.err
    last = done.err.splitlines()[-1]
    assert last.startswith("error: ")
    for part in parts:
        assert part in last
