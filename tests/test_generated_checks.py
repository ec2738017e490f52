"""A fresh project passes all of its own checks before the first edit, whatever the answers were."""

import itertools
import re
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
OWN_TESTS = ("pytest", "-n", "auto", "--dist", "loadfile", "-m")
# What a project on images shows for one on tables as well: what the engine does whatever the model and the data, in
# files that use neither, when workers are killed or disks are full, with another optimizer or another signal.
NO_TASK = ("test_workers.py", "test_faults.py")
NO_TASK_TESTS = (
    "test_devices.py::test_any_number_of_devices_ends_with_the_same_weights[momentum-cpu:4]",
    "test_devices.py::test_any_number_of_devices_ends_with_the_same_weights[adamw-cpu:2]",
    "test_devices.py::test_a_run_may_change_from_one_device_to_two_halfway",
    "test_devices.py::test_micro_batches_are_the_same_on_two_devices",
    "test_train.py::test_a_run_that_is_stopped_anywhere_ends_with_the_bits_of_one_that_was_not[SIGTERM-2]",
)
USES_TASK = re.compile(
    r"^from \w+(?:\.model|\.data)? import (?:Model|.*\b(?:data|model)\b)", re.MULTILINE
)

DECIDE_THE_FILES = ("task", "ci", "python_version")
EVERY = [
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
]
# Every choice of each question, and the longest and the shortest name.
SOME = [
    {"task": "image", "ci": "gitlab", "python_version": "3.13", "license": "BSD-3-Clause"},
    {"task": "tabular", "ci": "github", "python_version": "3.12", "project_slug": LONGEST_SLUG},
    {"task": "image", "ci": "none", "python_version": "3.11", "project_slug": SHORTEST_SLUG},
    # codespell corrects words; those of the answers are none of its business.
    {
        "project_name": "Teh Fo",  # codespell:ignore
        "author_name": "Ba Nd",  # codespell:ignore
        "organization": "Hte Wich",  # codespell:ignore
        "license": "Apache-2.0",
        "task": "tabular",
    },
]
ANSWERS = [*SOME, *(pytest.param(answers, marks=pytest.mark.release) for answers in EVERY)]


def own_tests(project: BakedProject, config: pytest.Config) -> tuple[str, ...]:
    """Return the command that runs a project's own tests, all of them or those of which each is shown once."""
    if config.getoption("--release"):
        return (*OWN_TESTS, "slow or not slow or release")
    if project.answers["task"] == "image":
        return (*OWN_TESTS, "not release")
    files = [
        f"engine/{path.name}"
        for path in sorted(project.path.glob("tests/engine/test_*.py"))
        if not USES_TASK.search(path.read_text(encoding="utf-8"))
    ]
    assert len(files) > 20
    left_out = (f"--ignore=tests/{name}" for name in (*NO_TASK, *files))
    return (
        *(*OWN_TESTS, "not release", *left_out),
        *(f"--deselect=tests/{name}" for name in NO_TASK_TESTS),
    )


def assert_passed(output: str) -> None:
    summary = output.splitlines()[-1]
    assert " passed" in summary
    print(
        output[output.rindex("short test summary") :] if "short test summary" in output else summary
    )


def test_own_tests_pass(default_project: BakedProject, request: pytest.FixtureRequest) -> None:
    command = own_tests(default_project, request.config)
    assert_passed(default_project.run(*command, timeout=3000).stdout)


def test_own_tests_of_a_project_on_tables_pass(
    bake: Bake, borrow: Callable[..., Result], request: pytest.FixtureRequest
) -> None:
    project = bake(task="tabular")
    command = own_tests(project, request.config)
    assert_passed(borrow(project, *command, timeout=3000).stdout)


def test_the_sample_has_every_choice() -> None:
    for key in DECIDE_THE_FILES:
        assert {answers[key] for answers in SOME if key in answers} == set(CHOICES[key])


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
