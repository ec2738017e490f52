"""Conventions are kept: git refuses a commit that breaks one, and the project's tests fail when a meaning is lost."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Bake, BakedProject, Result, commit, git_repository, run
from versions import edit

pytestmark = pytest.mark.slow

WRONG = re.compile(r"^Wrong.*?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
RULES = sorted(
    path.stem for path in Path(__file__).parent.parent.glob("{{*}}/conventions/rules/*.yml")
)
# Where a page's wrong example is put, if not into data.py.
PLACES = {"flags-bounded-and-documented": "flags.py", "imports-run-one-way": "engine/errors.py"}

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def project(bake: Bake, default_project: BakedProject) -> BakedProject:
    """Return the default project once more, committed and with its hooks switched on."""
    project = bake()
    shutil.copy(default_project.path / "uv.lock", project.path)
    git_repository(project.path)
    commit(project.path, "First")
    return project


@pytest.fixture(scope="module")
def run_in(project: BakedProject, default_project: BakedProject) -> Run:
    """Run a command in the copy, with its own code and the environment of the default project."""
    environment = {
        "UV_PROJECT_ENVIRONMENT": str(default_project.path / ".venv"),
        "UV_NO_SYNC": "1",
        "PYTHONPATH": str(project.path / "src"),
        "GIT_AUTHOR_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@example.com",
        "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@example.com",
    }

    def run_in(*command: str, status: int | None = 0) -> Result:
        return run(*command, folder=project.path, status=status, environment=environment)

    run_in("uv", "run", "pre-commit", "install")
    return run_in


@pytest.fixture(autouse=True)
def unchanged(project: BakedProject) -> None:
    """Begin each test with what was committed."""
    run("git", "reset", "--quiet", "--hard", folder=project.path)


def try_to_commit(run_in: Run) -> Result:
    run_in("git", "add", "--all")
    return run_in("git", "commit", "--quiet", "--message=Try", status=None)


def test_a_commit_that_breaks_no_rule_goes_through(project: BakedProject, run_in: Run) -> None:
    readme = project.path / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    source = project.path / "src" / project.package / "data.py"
    source.write_text(source.read_text(encoding="utf-8") + "\n\nMORE = 1\n", encoding="utf-8")
    done = try_to_commit(run_in)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run("git", "log", "--format=%s", folder=project.path).stdout.startswith("Try\n")


@pytest.mark.parametrize("rule", RULES)
def test_git_refuses_a_commit_that_breaks_a_rule(
    project: BakedProject, run_in: Run, rule: str
) -> None:
    """With the wrong example of the rule's own page; the message names the rule and the page."""
    wrong = WRONG.search(project.read(f"conventions/{rule}.md"))
    assert wrong is not None
    path = project.path / "src" / project.package / PLACES.get(rule, "data.py")
    path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{wrong[1]}", encoding="utf-8")
    done = try_to_commit(run_in)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert f"error[{rule}]: " in said
    assert f"Why, examples, exceptions: conventions/{rule}.md" in said
    assert run("git", "diff", "--cached", "--name-only", folder=project.path).stdout


def test_git_refuses_a_curve_that_is_named_by_a_string(project: BakedProject, run_in: Run) -> None:
    curves = project.path / "src" / project.package / "engine" / "run" / "curves.py"
    edit(curves, ("points[vocab.examples_per_second] =", 'points["examples_per_second"] ='))
    done = try_to_commit(run_in)
    assert done.returncode == 1
    assert "write vocab.examples_per_second for 'examples_per_second'" in done.stdout + done.stderr


def test_losing_the_curve_of_the_validation_error_fails(project: BakedProject, run_in: Run) -> None:
    edit(
        project.path / "src" / project.package / "engine" / "run" / "trainer.py",
        (" if isinstance(value, float)}", " if isinstance(value, float) and name != vocab.error}"),
    )
    done = run_in("uv", "run", "pytest", "tests/test_conventions.py", status=1)
    assert "FAILED tests/test_conventions.py::test_loss_of_training_and_error_of_v" in done.stdout


def test_clipping_before_the_reduction_fails(project: BakedProject, run_in: Run) -> None:
    edit(
        project.path / "src" / project.package / "engine" / "gradients.py",
        (
            "    if replica.num_replicas_in_sync > 1:\n",
            "    gradients = _clipped(gradients, tf.linalg.global_norm(gradients), options)\n"
            "    if replica.num_replicas_in_sync > 1:\n",
        ),
        ("_clipped(gradients, norm, options), variables", "gradients, variables"),
    )
    done = run_in("uv", "run", "pytest", "tests/engine/test_gradients.py", status=1)
    assert "::test_two_replicas_take_the_step_of_one" in done.stdout


def test_a_model_without_one_of_its_methods_fails(project: BakedProject, run_in: Run) -> None:
    model = project.path / "src" / project.package / "model.py"
    edit(model, ("    def inference(self,", "    def predict(self,"))
    command = ("uv", "run", "pytest", "tests/test_conventions.py", "-k", "methods")
    done = run_in(*command, status=1)
    assert "FAILED tests/test_conventions.py::test_the_model_has_the_methods" in done.stdout
