"""The template's own repository obeys what it asks of the generated projects."""

import os
import re
import tomllib
from pathlib import Path

import pytest
from conftest import REPOSITORY, Bake, git_repository, run

SECOND_COMMAND = "python3 scripts/run_tests.py"


def pins(pyproject: str) -> dict[str, str]:
    """Return the packages of the group `dev` that are pinned to one version."""
    group = tomllib.loads(pyproject)["dependency-groups"]["dev"]
    return dict(entry.split("==") for entry in group if isinstance(entry, str) and "==" in entry)


def test_checks_change_nothing(template: Path) -> None:
    git_repository(template)
    shared = {"UV_PROJECT_ENVIRONMENT": os.fspath(REPOSITORY / ".venv")}
    run("uv", "run", "pre-commit", "run", "--all-files", folder=template, environment=shared)
    assert run("git", "diff", "--name-only", folder=template).stdout == ""


def test_generated_tests_hold_no_template_language_but_the_name_of_the_package() -> None:
    """The hook replaces this one placeholder: another would be left in the project."""
    allowed = "{{ cookiecutter.__package_name }}"
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}"
        for path in sorted(REPOSITORY.glob("{{*}}/**/tests/**/*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"\{\{|\{%|\{#", line.replace(allowed, ""))
    ]
    assert found == []


def test_tools_have_one_version_here_and_in_generated_projects(bake: Bake) -> None:
    ours = pins((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    theirs = pins(bake().read("pyproject.toml"))
    assert {name: ours[name] for name in theirs} == theirs
    assert f'# dependencies = ["cruft=={ours["cruft"]}"]' in bake().read("template/update.py")


@pytest.mark.parametrize("where", ["template", "generated"])
def test_no_version_of_a_tool_stands_in_the_hooks(where: str, bake: Bake) -> None:
    root = REPOSITORY if where == "template" else bake().path
    hooks = (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "rev:" not in hooks
    assert "additional_dependencies" not in hooks
    assert set(re.findall(r"repo: (\S+)", hooks)) == {"local"}
    tools = set(re.findall(r"entry: uv run (\S+)", hooks))
    assert {"ruff", "codespell", "end-of-file-fixer"} <= tools


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert f"\n{SECOND_COMMAND}\n" in readme
    assert f"exec {SECOND_COMMAND} </dev/null\n" in script
