"""What the README promises on a fresh clone, on a machine with only Python, pip and git."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Bake, BakedProject, Result, commit, git_repository, run

pytestmark = pytest.mark.slow

QUICK_START = re.compile(r"^## Quick start\n(.*?)^## ", re.MULTILINE | re.DOTALL)


def machine_path() -> str:
    """Return PATH without the environment of these tests and the tools that it was made with."""
    hidden = (str(REPOSITORY / ""), str(Path(sys.prefix) / ""))
    parts = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(part for part in parts if not f"{part}{os.sep}".startswith(hidden))


def in_shell(command: str, folder: Path) -> Result:
    shell = f"export PATH={machine_path()!r}\n{command}"
    return run("bash", "-euo", "pipefail", "-c", shell, folder=folder, timeout=1200)


@pytest.fixture(scope="module")
def clone(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone of this repository, as it would be committed now."""
    git_repository(template)
    commit(template, "Template")
    folder = tmp_path_factory.mktemp("clone")
    run("git", "clone", "--quiet", template, "tf-template", folder=folder)
    return folder / "tf-template"


@pytest.fixture(scope="module")
def readme_commands() -> tuple[str, str]:
    """Return the two commands of the quick start in the template's README."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    section = QUICK_START.search(readme)
    assert section is not None
    first, second = re.findall(r"^python3 scripts/.*$", section[1], re.MULTILINE)
    return first, second


def test_bake_from_a_clone_is_the_same(clone: Path, bake: Bake, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps({key: str(tmp_path / key) for key in ("replay_dir", "cookiecutters_dir")})
    )
    arguments = ("--no-input", "--config-file", config, "--output-dir", tmp_path / "output")
    run(sys.executable, "-m", "cookiecutter", *arguments, f"git+file://{clone}", folder=tmp_path)
    from_clone = BakedProject(tmp_path / "output" / "digit-classifier", {})
    from_tree = bake()
    assert from_clone.files() == from_tree.files()
    assert all(from_clone.read(path) == from_tree.read(path) for path in from_tree.files())


def test_first_command_ends_with_a_trained_project(
    clone: Path, readme_commands: tuple[str, str]
) -> None:
    result = in_shell(readme_commands[0], clone)
    trained, evaluated = (
        json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")
    )
    assert trained["validation_error"] <= 0.03
    assert evaluated["error"] <= 0.04
    assert list((clone / "build" / "digit-classifier" / "runs" / "baseline").glob("**/*tfevents*"))
    assert run("git", "status", "--porcelain", folder=clone).stdout == ""


def test_second_command_runs_the_tests(clone: Path, readme_commands: tuple[str, str]) -> None:
    # All of them, this one too, would never end; .ci/run runs the command as it stands.
    result = in_shell(f"{readme_commands[1]} tests/test_bake.py -k github-3.11", clone)
    assert re.search(r"\d+ passed", result.stdout.splitlines()[-1])
