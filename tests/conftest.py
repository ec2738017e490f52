"""Bakes projects from a copy of the template that holds what a clone would hold, and runs commands in them.

Tests run on all cores, a file on one of them. The files that use the default project share one, in its own environment.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cookiecutter.main import cookiecutter
from filelock import FileLock

REPOSITORY = Path(__file__).resolve().parent.parent
CONTEXT: dict[str, Any] = json.loads((REPOSITORY / "cookiecutter.json").read_text(encoding="utf-8"))
CHOICES: dict[str, list[str]] = {
    key: value for key, value in CONTEXT.items() if key[0] != "_" and type(value) is list
}

# Every combination of task, continuous integration and Python version; the licences, which no other file depends on,
# are spread over them so that each pair of choices occurs.
COMBINATIONS: list[dict[str, str]] = [
    {
        "task": task,
        "ci": ci,
        "python_version": python_version,
        "license": CHOICES["license"][(2 * i + j + k) % len(CHOICES["license"])],
    }
    for i, task in enumerate(CHOICES["task"])
    for j, ci in enumerate(CHOICES["ci"])
    for k, python_version in enumerate(CHOICES["python_version"])
]

SHORTEST_SLUG = "a"
LONGEST_SLUG = "an-unusually-long-name-of-a-project-of-4"

Result = subprocess.CompletedProcess[str]

# What shares the run of the quick start stays on one core. Tests of these files share nothing with each other.
QUICK_START = ("command_line", "away", "browser")
ALONE = ("generated_checks", "recipes")
# These take minutes: they begin first, so that no core is left with one of them at the end.
LONGEST_FIRST = (
    "generated_checks",
    "quick start",
    "updates",
    "recipes",
    "own_problem",
    "fresh_clone",
    "slurm",
)


def group_of(nodeid: str) -> str:
    """Return what stays together on one core: the tests of a file, but for those of `QUICK_START` and `ALONE`."""
    file = Path(nodeid.partition("::")[0]).stem.removeprefix("test_")
    return "quick start" if file in QUICK_START else nodeid if file in ALONE else file


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --release."""
    parser.addoption("--release", action="store_true", help="also run in full what CI samples")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for a release, and begin with what takes longest."""
    left_out = [
        item
        for item in items
        if item.get_closest_marker("release") and not config.getoption("--release")
    ]
    config.hook.pytest_deselected(items=left_out)

    def turn(item: pytest.Item) -> tuple[bool, int]:
        group = group_of(item.nodeid)
        file = item.path.stem.removeprefix("test_") if group == item.nodeid else group
        known = LONGEST_FIRST.index(file) if file in LONGEST_FIRST else len(LONGEST_FIRST)
        return not item.get_closest_marker("slow"), known

    items[:] = sorted((item for item in items if item not in left_out), key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each core the next group of tests."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Groups(config, log)


SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what would lead git or uv away from the folder they run in."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PYTEST_"))
    }
    # uv would go through all of site-packages for each `uv run`; `sync` compiles once.
    for key in ("VIRTUAL_ENV", "PYTHONPATH", "UV_COMPILE_BYTECODE"):
        environment.pop(key, None)
    environment["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    )
    environment.setdefault("UV_PYTHON_DOWNLOADS", "never")
    return environment


def run(
    *command: str | Path,
    folder: Path,
    status: int | None = 0,
    stdin: str | None = None,
    timeout: float = 600,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run a command in `folder` and return its output; its exit status must be `status`, or any if None."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**clean_environment(), **(environment or {})},
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    shown = f"{' '.join(map(str, command))}\nexit status {result.returncode}\n{result.stdout}\n{result.stderr}"
    assert status is None or result.returncode == status, shown
    return result


def sync(folder: Path) -> None:
    """Make the environment of a project, with all of it compiled: many processes will import from it."""
    run("uv", "sync", "--quiet", folder=folder, environment={"UV_COMPILE_BYTECODE": "1"})


def git_repository(folder: Path) -> Path:
    """Make `folder` a git repository that tracks every file in it that its .gitignore does not name."""
    run("git", "init", "--quiet", "--initial-branch=main", folder=folder)
    run("git", "add", "--all", folder=folder)
    return folder


def commit(folder: Path, message: str) -> None:
    """Commit everything in a git repository, past its hooks; there may be nothing to commit."""
    who = ("user.name=Test", "user.email=test@example.com", "commit.gpgsign=false")
    settings = [part for setting in who for part in ("-c", setting)]
    run("git", "add", "--all", folder=folder)
    options = ("--quiet", "--allow-empty", "--no-verify", f"--message={message}")
    run("git", *settings, "commit", *options, folder=folder)


@dataclass(frozen=True)
class BakedProject:
    """A generated project and the answers that it was generated with."""

    path: Path
    answers: Mapping[str, str]

    @property
    def package(self) -> str:
        """Name of the Python package."""
        return self.answers["project_slug"].replace("-", "_")

    def files(self) -> set[str]:
        """Return the path of every file, relative to the project and with forward slashes."""
        return {
            path.relative_to(self.path).as_posix()
            for path in self.path.rglob("*")
            if not path.is_dir()
        }

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return (self.path / path).read_text(encoding="utf-8")

    def run(self, *command: str, status: int | None = 0, timeout: float = 600) -> Result:
        """Run a command in the project's own environment."""
        return run("uv", "run", *command, folder=self.path, status=status, timeout=timeout)

    def module(
        self, name: str, *flags: str, status: int | None = 0, timeout: float = 600
    ) -> Result:
        """Run one of the package's commands: `python -m <package>.<name> <flags>`."""
        command = ("python", "-m", f"{self.package}.{name}", *flags)
        return self.run(*command, status=status, timeout=timeout)


Bake = Callable[..., BakedProject]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of this repository with the files that git tracks or would track, and no others."""
    copy = tmp_path_factory.mktemp("template") / "tf-template"
    listed = run(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=REPOSITORY
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (REPOSITORY / name).is_file():  # not deleted since the last commit
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def bake(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Bake:
    """Return a function that generates a project: `bake(license="MIT", ...)`, defaults for what is not named."""

    def bake(**answers: str) -> BakedProject:
        unknown = answers.keys() - CONTEXT.keys()
        assert not unknown, (
            f"cookiecutter would ignore {unknown}"
        )  # silently, so a typing error would test nothing
        folder = tmp_path_factory.mktemp("bake")
        path = cookiecutter(
            str(template),
            no_input=True,
            extra_context=answers,
            output_dir=str(folder / "output"),
            default_config={
                "replay_dir": str(folder / "replay"),
                "cookiecutters_dir": str(folder / "clones"),
            },
        )
        replay = json.loads((folder / "replay" / "tf-template.json").read_text(encoding="utf-8"))
        return BakedProject(Path(path), replay["cookiecutter"])

    return bake


@pytest.fixture(scope="session")
def fresh(bake: Bake) -> Bake:
    """Return `bake` followed by what a user does first: an environment from `uv sync`, and a git repository."""

    def fresh(**answers: str) -> BakedProject:
        project = bake(**answers)
        sync(project.path)
        git_repository(project.path)
        return project

    return fresh


@pytest.fixture(scope="session")
def default_project(fresh: Bake, tmp_path_factory: pytest.TempPathFactory) -> BakedProject:
    """Return the default project in its own environment, one for the slow tests of all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made = folder / "default_project.json"
    with FileLock(folder / "default_project.lock"):
        if not made.exists():
            project = fresh()
            made.write_text(json.dumps([str(project.path), project.answers]), encoding="utf-8")
    path, answers = json.loads(made.read_text(encoding="utf-8"))
    return BakedProject(Path(path), answers)


def commands(readme: str, section: str) -> list[str]:
    """Return the commands in a section of the generated README, without comments."""
    text = dict(SECTION.findall(readme))[section]
    lines = "".join(BLOCK.findall(text)).splitlines()
    return [line.partition(" #")[0].rstrip() for line in lines if line]


def last_json(result: Result) -> dict[str, Any]:
    """Return the last line that a command printed."""
    value: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return value


def in_shell(project: BakedProject, command: str) -> Result:
    """Run a command in a project's folder, as it stands in a README."""
    return run("bash", "-euo", "pipefail", "-c", command, folder=project.path)


@pytest.fixture(scope="session")
def quick_start(default_project: BakedProject) -> dict[str, Result]:
    """Run the quick start of the generated README, word for word."""
    quick = commands(default_project.read("README.md"), "Quick start")
    assert len([command for command in quick if "tensorboard" not in command]) <= 4
    return {
        command: in_shell(default_project, command)
        for command in quick
        if "tensorboard" not in command
    }


@pytest.fixture(scope="session")
def borrow(
    default_project: BakedProject, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Result]:
    """Return a function that runs a command in another project with the environment of the default one.

    One TensorFlow for many projects, also for those that ask for a Python that is not here. So `uv run <command>`
    of their hooks is a script that runs the command.
    """
    # What mypy found of other packages holds for all of them, too.
    mypy_cache = str(tmp_path_factory.mktemp("mypy"))
    shim = tmp_path_factory.mktemp("shim") / "uv"
    shim.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    shim.chmod(0o755)
    programs = default_project.path / ".venv" / "bin"
    path = os.pathsep.join([str(shim.parent), str(programs), clean_environment()["PATH"]])

    def borrow(project: BakedProject, *command: str, timeout: float = 600) -> Result:
        environment = {
            "PATH": path,
            "PYTHONPATH": str(project.path / "src"),
            "MYPY_CACHE_DIR": mypy_cache,
        }
        first = str(programs / command[0])
        return run(
            first, *command[1:], folder=project.path, timeout=timeout, environment=environment
        )

    return borrow
