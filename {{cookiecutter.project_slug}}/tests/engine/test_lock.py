import pytest

from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.system.lock import lock_folder


def test_a_folder_in_which_another_process_trains_is_refused(tmp_path):
    with (
        lock_folder(str(tmp_path)),
        pytest.raises(UserError, match="another process trains there"),
        lock_folder(str(tmp_path)),
    ):
        pytest.fail("two at a time")
    with lock_folder(str(tmp_path)):
        pass  # given back


def test_a_file_in_the_way_of_the_folder_of_a_run_is_named(tmp_path):
    (tmp_path / "runs").write_text("")
    with (
        pytest.raises(UserError, match=rf"--model_dir={tmp_path}/runs/a: cannot be written"),
        lock_folder(f"{tmp_path}/runs/a"),
    ):
        pytest.fail("there is no folder")
