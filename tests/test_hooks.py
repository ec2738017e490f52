"""Answers that would break the project are refused at once, all in one message, and nothing is left behind."""

import importlib.util
import json
import keyword
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest
from conftest import REPOSITORY, Bake, Result, run

SLUGS = [
    *(
        "Digit",
        "digit_classifier",
        "digit classifier",
        "2fast",
        "-digits",
        "digits-",
        "digits--two",
        "digits.",
    ),
    *(
        "digits\n",
        "naïve",
        "ﬁt",
        "数字",
        "a.b",
        "a:b",
        "a*b",
        "~",
        "$HOME",
        "`ls`",
        "a;b",
        "--help",
        "x" * 41,
    ),
    *("../outside", "inside/deeper", "..\\outside", "/tmp/absolute"),
    *("class", "import", "none", "true", "async", "match"),
    *("json", "random", "test", "string", "tomllib", "imp", "distutils"),
    *("tests", "src", "presets", "conventions", "con", "nul", "com1", "lpt9"),
    *(
        "tensorflow",
        "keras",
        "numpy",
        "scikit-learn",
        "sklearn",
        "pillow",
        "pil",
        "absl",
        "absl-py",
        "tqdm",
        "ruff",
    ),
]
TEXTS = [
    *(
        "",
        " ",
        " leading",
        "trailing ",
        "two\nlines",
        "tab\there",
        "null\x00",
        "bell\x07",
        "escape\x1b[31m",
    ),
    *(
        "zero width\u200b",
        "right to left \u202e",
        "line separator\u2028",
        "non-breaking\xa0space",
        "bom\ufeff",
    ),
    *("x" * 301,),
]
EMAILS = [
    *(
        "nobody",
        "@example.com",
        "you@",
        "you@example",
        "you@@example.com",
        "you @example.com",
        "you@example..com",
    ),
    *(
        "you@-example.com",
        ".you@example.com",
        "you.@example.com",
        "yo..u@example.com",
        "you@example.com\n",
    ),
    *(
        "You <you@example.com>",
        "you@exam_ple.com",
        'you"@example.com',
        "you@例え.jp",
        "a@b.c, d@e.f",
    ),
]
MARKERS = ["{{ 7 * 7 }}", "{% raw %}", "{# note #}", "}}", "a {{ cookiecutter }} b"]
HOSTILE = [
    *(("project_slug", value) for value in SLUGS),
    *(
        (field, value)
        for value in TEXTS
        for field in ("project_name", "description", "author_name", "organization")
    ),
    *(("author_email", value) for value in EMAILS),
]


def load_hook(name: str) -> ModuleType:
    """Import a hook as it stands in the template, not rendered."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pre_gen = load_hook("pre_gen_project")
post_gen = load_hook("post_gen_project")


def answers(**changes: str) -> dict[str, str]:
    return {
        "project_name": "Digit Classifier",
        "project_slug": "digit-classifier",
        "description": "Classifies digits.",
        "author_name": "Your Name",
        "author_email": "you@example.com",
        "organization": "Your Organization",
        **changes,
    }


def generate(
    template: Path,
    folder: Path,
    *arguments: str,
    stdin: str | None = None,
    default_context: Mapping[str, str] | None = None,
) -> Result:
    """Run cookiecutter's command as a user would; it must refuse and leave nothing in `folder`."""
    with TemporaryDirectory() as home:  # what cookiecutter keeps of every run, wherever it ends
        config = Path(home) / "config.yaml"
        settings = {"replay_dir": f"{home}/replay", "default_context": dict(default_context or {})}
        config.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        command = [sys.executable, "-m", "cookiecutter", "--config-file", str(config)]
        command += ["--output-dir", str(folder / "output"), str(template)]
        if stdin is None:
            command.append("--no-input")
        result = run(*command, *arguments, folder=folder, stdin=stdin, status=1)
    assert [path for path in folder.rglob("*") if not path.is_dir()] == []
    return result


@pytest.mark.parametrize(("field", "value"), HOSTILE, ids=ascii)
def test_hostile_answer_is_a_problem_of_its_field(field: str, value: str) -> None:
    problems = pre_gen.find_problems(answers(**{field: value}))
    assert [problem.field for problem in problems] == [field]
    message = pre_gen.describe(problems)
    assert f"{field} = {value!a}" in message
    assert problems[0].reason in message or not problems[0].reason.isascii()
    assert "suggestion: " in message


def test_computed_answers_are_those_of_cookiecutter_json() -> None:
    context = json.loads((REPOSITORY / "cookiecutter.json").read_text(encoding="utf-8"))
    text = pre_gen.COMPUTED.removeprefix("{% raw %}").removesuffix("{% endraw %}")
    braces = "{" * 2
    expected = {k: v for k, v in context.items() if k[0] != "_" and braces in v}
    assert json.loads(text) == expected


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("field", ["project_slug", *pre_gen.MAX_LENGTH])
def test_what_cookiecutter_computed_is_refused_as_it_was_given(field: str, marker: str) -> None:
    given = {field: f"text {marker}"}
    [problem] = pre_gen.find_problems(answers(), given, {field: "something else"})
    assert (problem.field, problem.value) == (field, given[field])
    assert pre_gen.find_problems(answers(), given, given) == []


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("field", pre_gen.MAX_LENGTH)
def test_template_markers_are_refused_in_every_free_text(field: str, marker: str) -> None:
    problems = pre_gen.find_problems(answers(**{field: f"text {marker}"}))
    assert [problem.field for problem in problems] == [field]


@pytest.mark.parametrize(
    "slug", ["a", "digit-classifier", "x2", "a-1", "x" * 40, "con-1", "my-tensorflow"]
)
def test_good_slugs_are_taken(slug: str) -> None:
    assert pre_gen.find_problems(answers(project_slug=slug)) == []


@pytest.mark.parametrize(
    "email", ["a@b.co", "first.last+tag@sub.example-site.org", "o'neil_1@example.com"]
)
def test_good_addresses_are_taken(email: str) -> None:
    assert pre_gen.find_problems(answers(author_email=email)) == []


@pytest.mark.parametrize("slug", SLUGS)
def test_suggested_slug_would_be_taken(slug: str) -> None:
    [problem] = pre_gen.check_slug(slug)
    assert pre_gen.check_slug(problem.suggestion.strip("'")) == []


def test_all_python_keywords_are_known() -> None:
    words = {word.lower() for word in [*keyword.kwlist, *keyword.softkwlist] if word.isalpha()}
    assert words <= pre_gen.PYTHON_KEYWORDS


def test_all_problems_are_in_one_message(template: Path, tmp_path: Path) -> None:
    bad = ("project_slug=Bad_Slug", "author_email=nobody", "organization= ")
    result = generate(template, tmp_path, *bad)
    for field, value in (text.split("=") for text in bad):
        assert f"{field} = '{value}'" in result.stderr
    assert "suggestion: 'bad-slug'" in result.stderr


@pytest.mark.parametrize("slug", ["Bad_Slug", "../outside", "inside/deeper", "json", "digits-"])
def test_refused_on_the_command_line_nothing_is_left(
    template: Path, tmp_path: Path, slug: str
) -> None:
    result = generate(template, tmp_path, f"project_slug={slug}")
    assert f"project_slug = '{slug}'" in result.stderr


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        (["{{ 7 * 7 }}", "good-slug"], "project_name"),
        (["Digits", "Bad_Slug"], "project_slug"),
        (["Digits", "digits", "{% raw %}"], "description"),
        (["Digits", "digits", "", "Ann\u200b"], "author_name"),
        (["Digits", "digits", "", "", "nobody"], "author_email"),
        (["Digits", "digits", "", "", "", "{# x"], "organization"),
    ],
)
def test_refused_when_typed_nothing_is_left(
    template: Path, tmp_path: Path, typed: list[str], field: str
) -> None:
    everything = [*typed, *[""] * (10 - len(typed))]  # the last ones take their defaults
    result = generate(template, tmp_path, stdin="\n".join(everything) + "\n")
    assert f"{field} = " in result.stderr


def test_refused_from_a_user_config_nothing_is_left(template: Path, tmp_path: Path) -> None:
    result = generate(template, tmp_path, default_context={"author_email": "nobody"})
    assert "author_email = 'nobody'" in result.stderr


def test_message_can_be_shown_on_any_terminal() -> None:
    assert pre_gen.describe(pre_gen.find_problems(answers(author_name="Zoë\u200b"))).isascii()


def test_post_gen_knows_every_choice_of_ci() -> None:
    context = json.loads((REPOSITORY / "cookiecutter.json").read_text(encoding="utf-8"))
    assert list(post_gen.CI_FILES) == context["ci"]


def test_no_project_can_be_named_like_a_package_that_it_asks_for(bake: Bake) -> None:
    metadata = tomllib.loads(bake().read("pyproject.toml"))
    requirements = metadata["project"]["dependencies"] + metadata["dependency-groups"]["dev"]
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
    assert {"absl-py", "pytest-xdist"} <= names
    assert {name.replace("-", "_") for name in names} <= pre_gen.DEPENDENCIES
