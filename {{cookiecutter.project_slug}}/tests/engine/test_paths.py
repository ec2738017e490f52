from pathlib import Path

import pytest

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.paths import expand


@pytest.fixture
def folder(tmp_path):
    for name in ("b.png", "a.PNG", "c.txt", "deep/d.png", ".hidden/e.png", ".f.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def names(paths, folder):
    return [path.relative_to(folder).as_posix() for path in paths]


def test_a_folder_stands_for_the_wanted_files_in_it_and_in_its_folders(folder):
    assert names(expand("--input", [str(folder)], [".png"]), folder) == [
        *("a.PNG", "b.png", "deep/d.png")
    ]


def test_a_file_is_taken_whatever_it_is_called(folder):
    assert names(expand("--input", [f"{folder}/c.txt"], [".png"]), folder) == ["c.txt"]


def test_patterns_are_expanded_in_the_order_given(folder):
    found = expand("--input", [f"{folder}/**/d.*", f"{folder}/*.png"], [".png"])
    assert names(found, folder) == ["deep/d.png", "b.png"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], "--input is missing"),
        (["{}/none.png"], "no such file"),
        (["{}/b.png", "{}/x*"], "no such file"),
        (["{}/deep/deeper"], "holds no .png file"),
    ],
)
def test_what_names_no_file_is_refused(folder, patterns, expected):
    (folder / "deep" / "deeper").mkdir()
    with pytest.raises(UserError, match=expected):
        expand("--input", [pattern.format(folder) for pattern in patterns], [".png"])


def test_a_file_whose_name_is_a_pattern_is_that_file(folder):
    (folder / "g[1].png").write_text("")
    assert expand("--input", [f"{folder}/g[1].png"], [".png"]) == [Path(f"{folder}/g[1].png")]
