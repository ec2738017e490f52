"""What is generated, for every combination of choices: the right files, fully rendered, with the answers in them."""

import itertools
import re
import tomllib
from pathlib import Path

import pytest
from conftest import CHOICES, COMBINATIONS, LONGEST_SLUG, SHORTEST_SLUG, Bake, BakedProject
from expected_files import expected_files

LICENSE_LINES = {
    "MIT": "MIT License",
    "Apache-2.0": "Version 2.0, January 2004",
    "BSD-3-Clause": "BSD 3-Clause License",
    "Proprietary": "All rights reserved.",
}
TEXTS = [
    'Ann "the net" O\'Neil',
    r"C:\new\table",
    "Zoë Ångström, 東京",
    "rocket \N{ROCKET} science",
    "100 % of {this} & <that> # not a comment",
    "ends with a backslash\\",
]


def leftovers(text: str) -> list[str]:
    """Return what rendering should have taken away; `${{ }}` is GitHub's."""
    return re.findall(r"cookiecutter(?!\.\*).{0,40}|(?<!\$)\{\{.{0,40}|\{%.{0,40}|\{#.{0,40}", text)


def source_files(package: Path) -> dict[str, bytes]:
    return {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(params=COMBINATIONS, ids=lambda answers: "-".join(answers.values()), scope="module")
def combination(request: pytest.FixtureRequest, bake: Bake) -> BakedProject:
    return bake(**request.param)


def test_every_pair_of_choices_is_generated() -> None:
    for one, other in itertools.combinations(CHOICES, 2):
        pairs = {(combination[one], combination[other]) for combination in COMBINATIONS}
        assert pairs == set(itertools.product(CHOICES[one], CHOICES[other]))


def test_has_exactly_the_expected_files(combination: BakedProject) -> None:
    assert combination.files() == expected_files(combination)


def test_leaves_no_template_markers(combination: BakedProject) -> None:
    for path in sorted(combination.files() - {"template/update.py"}):  # which names the tool
        found = leftovers(path) + leftovers(combination.read(path))
        if path.startswith("src/"):  # real Python, copied as it is: braces are its own
            found = [text for text in found if text.startswith("cookiecutter")]
        assert not found, path


def test_has_the_metadata_of_its_answers(combination: BakedProject) -> None:
    answers = combination.answers
    metadata = tomllib.loads(combination.read("pyproject.toml"))["project"]
    license_name = answers["license"]
    assert metadata["name"] == answers["project_slug"]
    assert metadata["requires-python"] == f">={answers['python_version']},<3.14"
    expected = "LicenseRef-Proprietary" if license_name == "Proprietary" else license_name
    assert metadata["license"] == expected
    assert ("classifiers" in metadata) == (license_name == "Proprietary")
    text = combination.read("LICENSE")
    assert LICENSE_LINES[license_name] in text
    assert answers["organization"] in text


def test_empty_folders_are_not_left(combination: BakedProject) -> None:
    assert not [
        path for path in combination.path.rglob("*") if path.is_dir() and not any(path.iterdir())
    ]


@pytest.mark.parametrize("task", CHOICES["task"])
@pytest.mark.parametrize("slug", [SHORTEST_SLUG, "digit-classifier", LONGEST_SLUG])
def test_every_slug_gives_the_same_python(bake: Bake, template: Path, slug: str, task: str) -> None:
    project = bake(project_slug=slug, task=task)
    assert project.path.name == slug
    assert project.files() == expected_files(project)
    [shared] = template.glob("{{*}}/src/{{*}}")
    [own] = template.glob(f"{{{{*}}}}/tasks/{task}/src/{{{{*}}}}")
    assert not source_files(shared).keys() & source_files(own).keys()
    expected = source_files(shared) | source_files(own)
    assert source_files(project.path / "src" / slug.replace("-", "_")) == expected


def test_slug_follows_from_the_name(bake: Bake) -> None:
    assert bake(project_name="Été, à la Plage!").answers["project_slug"] == "ete-a-la-plage"
    assert bake(project_name="Number " * 14 + "1").path.name == "number-number-number-number-number"


@pytest.mark.parametrize("text", TEXTS)
def test_free_text_stands_unchanged_in_every_place(bake: Bake, text: str) -> None:
    project = bake(project_name=text, project_slug="texts", description=text, author_name=text)
    metadata = tomllib.loads(project.read("pyproject.toml"))["project"]
    assert metadata["description"] == text
    assert metadata["authors"] == [{"name": text, "email": "you@example.com"}]
    assert project.read("README.md").startswith(f"# {text}\n\n{text}\n")
    assert f"Copyright (c) {text}\n" in project.read("LICENSE")


def test_two_bakes_are_the_same(bake: Bake) -> None:
    first, second = bake(), bake()
    assert source_files(first.path) == source_files(second.path)


def test_next_commands_are_printed(bake: Bake, capfd: pytest.CaptureFixture[str]) -> None:
    bake(project_slug="my-model")
    printed = capfd.readouterr().out
    assert "cd my-model" in printed
    assert "uv run python -m my_model.train" in printed
