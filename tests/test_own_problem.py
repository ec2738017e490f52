"""A third kind of problem without a third task: the page `own-problem`, and the tests that no problem changes."""

from collections.abc import Callable

import pytest
from conftest import Bake, BakedProject, Result, last_json
from test_generated_checks import OWN_TESTS, assert_passed
from test_recipes import apply

pytestmark = pytest.mark.slow

# Resuming, the same on several devices and in several processes, and what else of the engine builds the model or reads
# the data. Where tests differ in a signal, an optimizer or a number of devices alone, one of them.
TESTS = (
    *("test_train.py", "test_evaluate.py", "test_vocab.py"),
    *(
        "engine/test_checkpoints.py",
        "engine/test_training.py",
        "engine/test_warm_start.py",
    ),
    "test_devices.py::test_any_number_of_devices_ends_with_the_same_weights[sgd-cpu:2]",
    "test_devices.py::test_two_processes_with_a_device_each_end_as_one_with_two[sgd]",
)
ONE_SIGNAL = ("-k", "not SIGTERM and not SIGINT")


@pytest.fixture(scope="module")
def project(bake: Bake) -> BakedProject:
    """Return a project on images after the edit of the page on other kinds of problem: it continues series."""
    project = bake(project_slug="wave-teller", ci="none")
    apply(project, "own-problem")
    return project


def test_resume_parity_and_engine_tests_pass(
    project: BakedProject, borrow: Callable[..., Result]
) -> None:
    chosen = (*ONE_SIGNAL, *(f"tests/{path}" for path in TESTS))
    assert_passed(borrow(project, *OWN_TESTS, "not release", *chosen, timeout=1800).stdout)


def test_it_learns(project: BakedProject, borrow: Callable[..., Result]) -> None:
    package = project.package
    borrow(project, "python", "-m", f"{package}.prepare", "--data_dir=data")
    borrow(project, "python", "-m", f"{package}.train", "--train_steps=1000", "--warmup_steps=50")
    figures = last_json(borrow(project, "python", "-m", f"{package}.evaluate", "--split=test"))
    assert figures["error"] < 0.1  # of values between -1 and 1


def test_engine_is_untouched_and_conventions_and_types_hold(
    project: BakedProject, bake: Bake, borrow: Callable[..., Result]
) -> None:
    before = bake(project_slug="wave-teller", ci="none")
    engine = f"src/{project.package}/engine/"
    files = [path for path in before.files() if path.startswith((engine, "tests/engine/"))]
    assert files
    assert all(project.read(path) == before.read(path) for path in files)
    borrow(project, "ast-grep", "scan")
    borrow(project, "ruff", "check", "src")
    borrow(project, "ruff", "format", "--check", "src")
    borrow(project, "mypy", "src")
