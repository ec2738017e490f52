import os

import numpy as np

from {{ cookiecutter.__package_name }}.engine.run import events
from {{ cookiecutter.__package_name }}.engine.summaries import Writer


def written(folder, steps):
    writer = Writer(folder)
    writer.scalars(np.array(steps), {"loss": np.array(steps, np.float32)})


def test_values_after_a_step_are_dropped_from_every_file(tmp_path, event_values):
    written(tmp_path, [1, 2, 3])
    written(tmp_path, [4, 5, 6])
    events.drop_after(tmp_path, 4)
    assert sorted(step for _, step, _ in event_values(tmp_path)) == [1, 2, 3, 4]
    events.drop_after(tmp_path, 2)
    assert [(tag, step, float(value)) for tag, step, value in event_values(tmp_path)] == [
        ("loss", 1, 1.0),
        ("loss", 2, 2.0),
    ]


def test_files_without_later_values_are_not_touched(tmp_path):
    written(tmp_path, [1, 2, 3])
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in tmp_path.iterdir()}
    events.drop_after(tmp_path, 3)
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in tmp_path.iterdir()} == before


def test_a_value_that_was_cut_off_is_dropped(tmp_path, event_values):
    written(tmp_path, [1, 2, 3])
    (path,) = tmp_path.iterdir()
    os.truncate(path, path.stat().st_size - 3)
    events.drop_after(tmp_path, 10)
    assert [step for _, step, _ in event_values(tmp_path)] == [1, 2]


def test_a_folder_that_is_not_there_holds_nothing_to_drop(tmp_path):
    events.drop_after(tmp_path / "none", 3)


def test_nothing_is_left_of_a_run_that_starts_anew(tmp_path, event_values):
    written(tmp_path, [0, 1, 2])
    events.drop_after(tmp_path, -1)
    assert event_values(tmp_path) == []
