"""A fresh project passes all of its own checks before the first edit, in an environment of its own."""

import zipfile
from pathlib import Path

import pytest
from conftest import LONGEST_SLUG, SHORTEST_SLUG, Bake, BakedProject, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[SHORTEST_SLUG, "default", LONGEST_SLUG])
def project(
    request: pytest.FixtureRequest, fresh: Bake, default_project: BakedProject
) -> BakedProject:
    return default_project if request.param == "default" else fresh(project_slug=request.param)


def test_pre_commit_changes_nothing(project: BakedProject) -> None:
    output = project.run("pre-commit", "run", "--all-files").stdout
    assert "no files to check" not in output
    assert run("git", "diff", "--name-only", folder=project.path).stdout == ""


def test_types_are_right(project: BakedProject) -> None:
    assert "Success: no issues found" in project.run("mypy").stdout


def test_names_that_a_dictionary_calls_wrong_are_no_finding(fresh: Bake) -> None:
    names = {"project_name": "Teh Fo", "author_name": "Ba Nd"}  # codespell:ignore
    project = fresh(license="Apache-2.0", organization="Hte Wich", **names)  # codespell:ignore
    project.run("pre-commit", "run", "codespell", "--all-files")


def test_own_tests_pass(default_project: BakedProject) -> None:
    output = default_project.run("pytest", "-m", "slow or not slow", timeout=1800).stdout
    summary = output.splitlines()[-1]
    assert " passed" in summary
    assert " deselected" not in summary


def test_cuda_extra_resolves(default_project: BakedProject) -> None:
    assert 'name = "nvidia-cudnn-cu12"' in default_project.read("uv.lock")


@pytest.mark.parametrize("license_name", ["MIT", "Proprietary"])
def test_wheel_holds_package_and_licence(bake: Bake, tmp_path: Path, license_name: str) -> None:
    project = bake(license=license_name)
    run("uv", "build", "--wheel", "--out-dir", tmp_path, folder=project.path)
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert f"{project.package}/engine/__init__.py" in names
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
