"""Every recipe of a generated project is a complete edit: it is applied as it stands on its page, checked and trained.

A page under ``docs/recipes`` holds the edit as blocks: ``diff`` for a part of a file, ``python`` whose first line is a
path for a whole one, other ``python`` to run, ``bash`` with the commands to try it. What must hold beyond training and
resuming is in ``tests/recipes/<page>.py``: a page without it fails.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CHOICES, REPOSITORY, Bake, BakedProject, Result, git_repository, run

CASES = REPOSITORY / "tests" / "recipes"
PROJECT = REPOSITORY / "{{cookiecutter.project_slug}}"
BLOCK = re.compile(r"^```(diff|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEW_FILE = re.compile(r"# ([\w./-]+)\n")
COMMANDS = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGED_FILE = re.compile(r"--- a/(\S+)\n\+\+\+ b/\1\n@@.*\n")


def pages() -> list[tuple[str, str]]:
    """Return the task and the name of every page; a page for any task is tried on images."""
    found = [("image", path.stem) for path in PROJECT.glob("docs/recipes/*.md")]
    found += [(path.parts[-4], path.stem) for path in PROJECT.glob("tasks/*/docs/recipes/*.md")]
    return sorted(found)


def commands_of(page: str) -> list[str]:
    """Return the commands on a page."""
    return "".join(COMMANDS.findall(page)).splitlines()


def script_of(page: str) -> str:
    """Return the Python on a page that is no file of the project."""
    blocks = [block for kind, block in BLOCK.findall(page) if kind == "python"]
    return "\n".join(block for block in blocks if not NEW_FILE.match(block))


def changed(text: str, hunks: str, page: str) -> str:
    """Return a file's text after the hunks of a diff; the lines before each must stand there once, wherever."""
    for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE):
        lines = [line or " " for line in hunk.splitlines()]
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        found = len(re.findall(f"^{re.escape(before)}", text, re.MULTILINE))
        assert found == 1, f"{page}: these lines stand {found} times, not once:\n{before}"
        text = text.replace(before, after)
    return text


def apply(project: BakedProject, page: str) -> None:
    """Make the edit of a page in a project."""
    edit = project.read(f"docs/recipes/{page}.md")
    for command in commands_of(edit):
        if command.startswith("rm "):
            run(*command.replace("rm ", "rm -f ").split(), folder=project.path)
    for kind, block in BLOCK.findall(edit):
        if kind == "diff":
            header = CHANGED_FILE.match(block)
            assert header, f"{page}: a diff begins with --- a/<file>, +++ b/<file> and @@"
            path = project.path / header[1]
            text = changed(path.read_text(encoding="utf-8"), block[header.end() :], page)
            path.write_text(text, encoding="utf-8")
        elif header := NEW_FILE.match(block):
            path = project.path / header[1]
            path.write_text(block[header.end() :].lstrip("\n"), encoding="utf-8")


def test_every_page_has_its_case_and_stands_in_the_readme() -> None:
    names = {page for _, page in pages()}
    assert names
    assert names == {path.stem.replace("_", "-") for path in CASES.glob("*.py")} - {"driver"}
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"\(docs/recipes/([\w-]+)\.md\)", readme))


def test_a_hunk_is_found_wherever_its_lines_stand_and_only_if_they_stand_once() -> None:
    assert changed("a\nb\nc\n", " b\n-c\n+d\n", "page") == "a\nb\nd\n"
    with pytest.raises(AssertionError, match="2 times"):
        changed("b\nb\n", "-b\n+d\n", "page")


@pytest.mark.parametrize("task", CHOICES["task"])
def test_every_edit_can_be_made(bake: Bake, task: str) -> None:
    project = bake(task=task, ci="none")
    folder = project.path / "src"
    before = {path: path.read_bytes() for path in folder.rglob("*.py")}
    pages = sorted(project.path.glob("docs/recipes/*.md"))
    assert pages
    for page in pages:
        apply(project, page.stem)
        engine = folder / project.package / "engine"
        assert all(path.read_bytes() == before[path] for path in engine.rglob("*.py"))
        for path, text in before.items():
            path.write_bytes(text)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "page"), pages(), ids=lambda value: value)
def test_recipe_trains_resumes_agrees_on_two_devices_and_keeps_the_conventions(
    bake: Bake, borrow: Callable[..., Result], tmp_path: Path, task: str, page: str
) -> None:
    project = bake(task=task, ci="none")
    apply(project, page)
    git_repository(project.path)
    borrow(project, "pre-commit", "run", "--all-files")
    text = project.read(f"docs/recipes/{page}.md")
    (tmp_path / "commands").write_text("\n".join(commands_of(text)), encoding="utf-8")
    (tmp_path / "script.py").write_text(script_of(text), encoding="utf-8")
    for devices in ("cpu", "cpu:2"):
        given = (page, project.package, devices, str(tmp_path))
        borrow(project, "python", str(CASES / "driver.py"), *given, timeout=900)
