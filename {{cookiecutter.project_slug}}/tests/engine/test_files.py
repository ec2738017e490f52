import json

import pytest

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.system.files import to_json, write_text


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


def test_numbers_that_json_does_not_have_become_null():
    value = {"loss": float("nan"), "best": [(0.5, 3), (float("inf"), 4)], "é": None, "step": 7}
    text = to_json(value, ensure_ascii=False)
    assert text == '{"loss": null, "best": [[0.5, 3], [null, 4]], "é": null, "step": 7}'
    assert json.loads(text)["step"] == 7
