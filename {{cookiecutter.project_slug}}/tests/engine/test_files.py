import json
import os
import signal
import subprocess
import sys

import pytest

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.system import files
from {{ cookiecutter.__package_name }}.engine.system.files import staged, to_json, write_text


def test_a_text_replaces_the_one_before_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    for text in ("one", "zwei ü\n"):
        write_text(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_that_cannot_be_written_leaves_the_one_before(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "one")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\udc00")  # cannot be encoded: fails after the file beside was opened
    assert path.read_text() == "one"


def test_a_folder_that_is_not_there_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "none" / "a.txt"
    with pytest.raises(UserError, match=f"^{path} could not be written"):
        write_text(path, "one")


def test_a_folder_in_the_place_of_a_file_is_kept(tmp_path):
    (tmp_path / "a.txt").mkdir()
    (tmp_path / "a.txt" / "thesis").write_text("years of work")
    with pytest.raises(UserError, match="could not be written"):
        write_text(tmp_path / "a.txt", "one")
    assert (tmp_path / "a.txt" / "thesis").read_text() == "years of work"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_replaces_the_one_before(tmp_path):
    path = tmp_path / "data"
    for name in ("first", "second"):
        with staged(path) as staging:
            (staging / "data" / "deep").mkdir(parents=True)
            (staging / "data" / "deep" / name).write_text(name)
        assert [p.name for p in path.rglob("*")] == ["deep", name]
    assert os.listdir(tmp_path) == ["data"]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    (path / "old").write_text("")

    def fail():
        with staged(path) as staging:
            (staging / "data").mkdir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(tmp_path) == ["data"]
    assert os.listdir(path) == ["old"]


def test_names_appear_in_the_order_given(tmp_path, monkeypatch):
    appeared: list[str] = []
    replace = files.Path.replace

    def recorded(new, path):
        appeared.append(path.name)
        return replace(new, path)

    monkeypatch.setattr(files.Path, "replace", recorded)
    with staged(tmp_path / "z.data", tmp_path / "a.index") as staging:
        (staging / "a.index").write_text("")
        (staging / "z.data").write_text("")
    assert appeared == ["z.data", "a.index"]


def test_folders_that_cannot_be_flushed_are_written_all_the_same(tmp_path, monkeypatch):
    fsync = os.fsync

    def files_only(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    with staged(tmp_path / "data") as staging:
        (staging / "data").mkdir()
        (staging / "data" / "a").write_text("one")
    assert (tmp_path / "data" / "a").read_text() == "one"


KILLED = f"""
import os, pathlib, signal, sys
from {files.__name__} import staged

def die_after(method):
    original = getattr(pathlib.Path, method)
    def killed(self, other):
        original(self, other)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(pathlib.Path, method, killed)

path, moment = pathlib.Path(sys.argv[1]), sys.argv[2]
with staged(path) as staging:
    (staging / path.name).mkdir()
    (staging / path.name / "new").write_text("")
    if moment == "writing":
        os.kill(os.getpid(), signal.SIGKILL)
    die_after("rename" if moment == "between the renames" else "replace")
"""


@pytest.mark.parametrize("moment", ["writing", "between the renames", "after the renames"])
def test_what_a_killed_process_left_is_put_right(tmp_path, moment):
    path = tmp_path / "data"
    path.mkdir()
    (path / "old").write_text("")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), moment],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    with staged(path) as staging:
        assert os.listdir(path) == ["new" if moment == "after the renames" else "old"]
        assert os.listdir(staging) == []
        (staging / "data").mkdir()
    assert os.listdir(tmp_path) == ["data"]


def test_numbers_that_json_does_not_have_become_null():
    value = {"loss": float("nan"), "best": [(0.5, 3), (float("inf"), 4)], "é": None, "step": 7}
    text = to_json(value, ensure_ascii=False)
    assert text == '{"loss": null, "best": [[0.5, 3], [null, 4]], "é": null, "step": 7}'
    assert json.loads(text)["step"] == 7
