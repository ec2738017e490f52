"""The workflow files, the template's and the generated ones: valid, least privileges, actions pinned by commit."""

import re
from pathlib import Path

import pytest
from conftest import REPOSITORY, Bake, run

PIN = re.compile(r"uses: ([\w.-]+/[\w.-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)\n")


@pytest.fixture(scope="module", params=["template", "generated"])
def workflows(request: pytest.FixtureRequest, bake: Bake) -> list[Path]:
    root = REPOSITORY if request.param == "template" else bake(ci="github").path
    return sorted((root / ".github" / "workflows").glob("*.yml"))


def test_obey_the_schema(workflows: list[Path]) -> None:
    command = ("check-jsonschema", "--builtin-schema", "vendor.github-workflows")
    run(*command, *workflows, folder=REPOSITORY)


def test_have_no_security_finding(workflows: list[Path]) -> None:
    result = run("zizmor", "--offline", "--no-progress", *workflows, folder=REPOSITORY)
    assert "No findings to report" in result.stdout + result.stderr


def test_actions_are_pinned_by_commits_whose_source_is_recorded(workflows: list[Path]) -> None:
    decisions = (REPOSITORY / "docs" / "decisions.md").read_text(encoding="utf-8")
    text = "".join(path.read_text(encoding="utf-8") for path in workflows)
    pins = set(PIN.findall(text))
    assert len(PIN.findall(text)) == text.count("uses: ") > 0
    for action, commit, version in pins:
        assert f"`{action}@{commit}` ({version})" in decisions
