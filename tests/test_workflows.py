"""The files for continuous integration, the template's and the generated ones: valid, least privileges, pinned."""

import re
from pathlib import Path

import pytest
from conftest import CHOICES, REPOSITORY, Bake, run

PIN = re.compile(r"uses: ([\w.-]+/[\w.-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)\n")


@pytest.fixture(scope="module", params=["template", *CHOICES["task"]])
def root(request: pytest.FixtureRequest, bake: Bake) -> Path:
    """Return this repository, or a project of each task, with GitHub's files."""
    return REPOSITORY if request.param == "template" else bake(ci="github", task=request.param).path


@pytest.fixture(scope="module")
def workflows(root: Path) -> list[Path]:
    return sorted((root / ".github" / "workflows").glob("*.yml"))


def obey(schema: str, *files: Path) -> None:
    run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files, folder=REPOSITORY)


def test_workflows_obey_the_schema(workflows: list[Path]) -> None:
    obey("github-workflows", *workflows)


def test_proposals_of_updates_obey_the_schema(root: Path) -> None:
    obey("dependabot", root / ".github" / "dependabot.yml")


@pytest.mark.parametrize("task", CHOICES["task"])
@pytest.mark.parametrize("python_version", CHOICES["python_version"])
def test_pipelines_of_gitlab_obey_the_schema(bake: Bake, task: str, python_version: str) -> None:
    project = bake(ci="gitlab", task=task, python_version=python_version)
    obey("gitlab-ci", project.path / ".gitlab-ci.yml")
    obey("renovate", project.path / "renovate.json")
    assert f"image: python:{python_version}-bookworm\n" in project.read(".gitlab-ci.yml")


def test_have_no_security_finding(root: Path) -> None:
    result = run("zizmor", "--offline", "--no-progress", root / ".github", folder=REPOSITORY)
    assert "No findings to report" in result.stdout + result.stderr


def test_the_image_that_has_a_token_is_pinned_by_digest_whose_source_is_recorded(
    bake: Bake,
) -> None:
    [image] = re.findall(r"name: (renovate/.*)", bake(ci="gitlab").read(".gitlab-ci.yml"))
    assert re.fullmatch(r"renovate/renovate:\d+\.\d+\.\d+@sha256:[0-9a-f]{64}", image)
    assert f"`{image}`" in (REPOSITORY / "docs" / "decisions.md").read_text(encoding="utf-8")


def test_gitlab_installs_the_version_of_uv_that_this_repository_uses(bake: Bake) -> None:
    [version] = re.findall(r"uv==([\d.]+)", bake(ci="gitlab").read(".gitlab-ci.yml"))
    assert f'"uv=={version}"' in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


def test_actions_are_pinned_by_commits_whose_source_is_recorded(workflows: list[Path]) -> None:
    decisions = (REPOSITORY / "docs" / "decisions.md").read_text(encoding="utf-8")
    text = "".join(path.read_text(encoding="utf-8") for path in workflows)
    pins = set(PIN.findall(text))
    assert len(PIN.findall(text)) == text.count("uses: ") > 0
    for action, commit, version in pins:
        assert f"`{action}@{commit}` ({version})" in decisions
