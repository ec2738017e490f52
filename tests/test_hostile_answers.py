"""Each hostile answer is refused with its field named and no file left, or gives a project that shows it unchanged.

They are given in three ways: typed, on the command line, and in a user's config. Cookiecutter runs in this process.
"""

import importlib.metadata
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import CONTEXT, REPOSITORY, Bake, run
from cookiecutter.cli import main as command
from cookiecutter.exceptions import CookiecutterException
from cookiecutter.main import cookiecutter
from test_bake import TEXTS
from test_hooks import HOSTILE, MARKERS

pytestmark = pytest.mark.slow

QUESTIONS = [key for key in CONTEXT if key[0] != "_"]
WAYS = ("typed", "command line", "user config")
ASKED = [
    *HOSTILE,
    *((field, f"text {marker}") for field in QUESTIONS[:6] for marker in MARKERS),
    *((field, text) for field in ("project_name", "description", "author_name") for text in TEXTS),
]


def way_for(number: int, value: str) -> str:
    """Return how to give an answer; one line is read, without the spaces around it, and an empty one is the default."""
    way = WAYS[number % len(WAYS)]
    can_be_typed = value == value.strip() != "" and value.splitlines() == [value]
    return way if way != "typed" or can_be_typed else "command line"


CASES = [
    *((field, value, way_for(number, value)) for number, (field, value) in enumerate(ASKED)),
    *((field, "none of them", way) for field in QUESTIONS[6:] for way in WAYS[:2]),
]


def settings(folder: Path, **context: str) -> dict[str, object]:
    return {
        "replay_dir": str(folder / "home" / "replay"),
        "cookiecutters_dir": str(folder / "home" / "clones"),
        "default_context": context,
    }


def typed(template: Path, folder: Path, field: str, value: str) -> str:
    """Answer the questions one by one and return what was shown; the defaults are taken for the others."""
    lines = ["" if key != field else value for key in QUESTIONS]
    if field == "project_name":
        lines[QUESTIONS.index("project_slug")] = "digit-classifier"
    # A question is asked again after a choice that there is not; the input ends instead.
    given = "".join(f"{line}\n" for line in lines)
    config = folder / "config.yaml"
    config.write_text(f"replay_dir: {folder / 'home'}\ncookiecutters_dir: {folder / 'home'}\n")
    arguments = [
        "--config-file",
        str(config),
        "--output-dir",
        str(folder / "output"),
        str(template),
    ]
    result = CliRunner().invoke(command, arguments, input=given)
    config.unlink()
    return f"{result.output}{result.exception or ''}"


def generate(template: Path, folder: Path, field: str, value: str, way: str) -> str:
    """Give one answer in one way and return what was said besides the hook's own message."""
    if way == "typed":
        return typed(template, folder, field, value)
    answers = {field: value}
    if field == "project_name":
        answers["project_slug"] = "digit-classifier"
    try:
        cookiecutter(
            str(template),
            no_input=True,
            extra_context=answers if way == "command line" else {},
            default_config=settings(folder, **(answers if way == "user config" else {})),
            output_dir=str(folder / "output"),
        )
    except (CookiecutterException, ValueError) as error:
        return str(error)
    return ""


def test_there_are_at_least_a_hundred_and_each_way_is_taken() -> None:
    assert len(CASES) >= 100
    assert {way for _, _, way in CASES} == set(WAYS)


@pytest.mark.parametrize("field", QUESTIONS[6:])
def test_a_choice_in_a_config_that_there_is_not_is_warned_of_and_the_default_taken(
    template: Path, tmp_path: Path, field: str
) -> None:
    with pytest.warns(UserWarning, match=f"none of them provided for choice variable {field}"):
        assert generate(template, tmp_path, field, "none of them", "user config") == ""
    assert (tmp_path / "output" / "digit-classifier" / "pyproject.toml").is_file()


@pytest.mark.parametrize(("field", "value", "way"), CASES, ids=ascii)
def test_is_refused_by_name_without_a_file_or_stands_unchanged(
    template: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    field: str,
    value: str,
    way: str,
) -> None:
    said = generate(template, tmp_path, field, value, way) + "".join(capfd.readouterr())
    made = list((tmp_path / "output").rglob("pyproject.toml"))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "home" not in path.parts]
    if (field, value) not in [(field, text) for text in TEXTS]:
        assert not made
        assert files == []
        assert field in said or (way == "typed" and field in QUESTIONS[6:])
        assert not list(template.parent.glob("outside"))
        return
    [project] = [path.parent for path in made]
    metadata = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = metadata["authors"][0]["name"]
    readme = (project / "README.md").read_text(encoding="utf-8")
    shown = {"project_name": readme.split("\n")[0][2:], "description": readme.split("\n")[2]}
    assert {**shown, "author_name": name}[field] == value
    for path in project.rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), path, "exec")


@pytest.mark.parametrize("text", TEXTS)
def test_a_project_with_it_is_installed_and_imported(bake: Bake, tmp_path: Path, text: str) -> None:
    project = bake(project_name=text, project_slug="texts", description=text, author_name=text)
    target = ("--target", tmp_path, "--python", sys.executable)
    run("uv", "pip", "install", "--quiet", "--no-deps", *target, project.path, folder=REPOSITORY)
    run(sys.executable, "-c", "import texts.engine", folder=tmp_path)
    [distribution] = importlib.metadata.distributions(path=[str(tmp_path)])
    assert distribution.metadata["Summary"] == text
    # RFC 822 quotes a name that holds more than words; what is written there is the name all the same.
    shown = distribution.metadata["Author-Email"] or distribution.metadata["Author"]
    assert text.replace("\\", "\\\\").replace('"', '\\"') in shown or text in shown
