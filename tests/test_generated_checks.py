"""A fresh project passes all of its own checks before the first edit, whatever the answers were."""

import itertools
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import (
    CHOICES,
    LONGEST_SLUG,
    SHORTEST_SLUG,
    Bake,
    BakedProject,
    Result,
    git_repository,
    run,
)

pytestmark = pytest.mark.slow

# As the workflows of a generated project run them.
ALL_TESTS = ("pytest", "-n", "auto", "--dist", "loadfile", "-m", "slow or not slow")
DECIDE_THE_FILES = ("task", "ci", "python_version")
ANSWERS = [
    *(
        dict(zip(DECIDE_THE_FILES, chosen, strict=True))
        for chosen in itertools.product(*(CHOICES[key] for key in DECIDE_THE_FILES))
    ),
    # Import order and wrapping depend on the length of the package's name.
    *(
        {"task": task, "project_slug": slug}
        for task in CHOICES["task"]
        for slug in (SHORTEST_SLUG, LONGEST_SLUG)
    ),
    # codespell corrects words; those of the answers are none of its business.
    {
        "project_name": "Teh Fo",  # codespell:ignore
        "author_name": "Ba Nd",  # codespell:ignore
        "organization": "Hte Wich",  # codespell:ignore
        "license": "Apache-2.0",
    },
]


@pytest.mark.parametrize("answers", ANSWERS, ids=lambda answers: "-".join(answers.values()))
def test_pre_commit_changes_nothing(
    bake: Bake, borrow: Callable[..., Result], answers: dict[str, str]
) -> None:
    project = bake(**answers)
    git_repository(project.path)
    output = borrow(project, "pre-commit", "run", "--all-files").stdout
    assert "no files to check" not in output
    assert run("git", "diff", "--name-only", folder=project.path).stdout == ""


def test_a_project_checks_itself_with_its_own_environment(default_project: BakedProject) -> None:
    default_project.run("pre-commit", "run", "--all-files")
    assert run("git", "diff", "--name-only", folder=default_project.path).stdout == ""


def test_own_tests_pass(default_project: BakedProject) -> None:
    output = default_project.run(*ALL_TESTS, timeout=3000).stdout
    summary = output.splitlines()[-1]
    assert " passed" in summary
    assert " deselected" not in summary


def test_own_tests_of_a_project_on_tables_pass(bake: Bake, borrow: Callable[..., Result]) -> None:
    output = borrow(bake(task="tabular"), *ALL_TESTS, timeout=3000).stdout
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
