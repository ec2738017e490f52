"""The conventions of `conventions/`: the rules do what their pages say, and the package keeps them.

What takes TensorFlow to find out (reductions, traces) is tested where that is; `conventions/README.md` says where.
"""

import inspect
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from {{ cookiecutter.__package_name }} import flags
from {{ cookiecutter.__package_name }}.vocab import vocab

PACKAGE = Path(flags.__file__).parent
ROOT = PACKAGE.parents[1]
PAGES = ROOT / "conventions"
RULES = sorted(path.stem for path in (PAGES / "rules").glob("*.yml"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORTS = "import keras\nimport tensorflow as tf\n\n"


def ast_grep(*arguments, cwd=ROOT):
    program = Path(sysconfig.get_path("scripts")) / "ast-grep"
    return subprocess.run(
        [str(program), *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Rules broken by the examples of each page: (page, "right" | "wrong" | "exception") -> names of rules."""
    project = tmp_path_factory.mktemp("examples")
    shutil.copy(ROOT / "sgconfig.yml", project)
    shutil.copytree(PAGES, project / "conventions")
    kinds = ("right", "wrong", "exception")
    for page in RULES:
        blocks = BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
        rule = (PAGES / "rules" / f"{page}.yml").read_text(encoding="utf-8")
        place = re.findall(r'^files: \["src/(?:\*/)?(.*?)[",]', rule, re.MULTILINE)[0]
        for kind, block in zip(kinds, (blocks[0], blocks[-2], blocks[-1]), strict=True):
            # Each example lies where its rule looks; the folder tells which one it is.
            file = project / "src" / f"{page}.{kind}" / place.replace("**", "model.py")
            file.parent.mkdir(parents=True)
            file.write_text(IMPORTS + block, encoding="utf-8")
    found: dict = {(page, kind): set() for page in RULES for kind in kinds}
    for finding in json.loads(ast_grep("scan", "--json", cwd=project).stdout):
        page, _, kind = Path(finding["file"]).parts[1].partition(".")
        found[page, kind].add(finding["ruleId"])
    return found


@pytest.mark.parametrize("rule", RULES)
def test_a_page_shows_what_is_right_what_is_wrong_and_how_to_make_an_exception(findings, rule):
    text = (PAGES / f"{rule}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {rule}\n\n**What.**")
    assert "**Why.**" in text
    assert f"ast-grep-ignore: {rule}" in text
    assert rule not in findings[rule, "right"]
    assert rule in findings[rule, "wrong"]
    assert rule not in findings[rule, "exception"]
    assert f"]({rule}.md)" in (PAGES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", RULES)
def test_a_message_says_what_to_write_and_where_the_page_is(rule):
    text = (PAGES / "rules" / f"{rule}.yml").read_text(encoding="utf-8")
    assert text.startswith(("#", f"id: {rule}\n"))
    assert f"\nid: {rule}\n" in f"\n{text}"
    assert re.search(r"^message: .+; .+\.$", text, re.MULTILINE)
    assert f"conventions/{rule}.md" in text


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_five_spellings_to_catch_and_five_to_let_pass(rule):
    text = (PAGES / "tests" / f"{rule}-test.yml").read_text(encoding="utf-8")
    identity, valid, invalid = re.split(r"^(?:in)?valid:\n", text, flags=re.MULTILINE)
    assert identity == f"id: {rule}\n"
    assert min(len(re.findall(r"^  - ", part, re.MULTILINE)) for part in (valid, invalid)) >= 5


def test_rules_catch_what_they_must_and_nothing_else():
    done = ast_grep("test", "--skip-snapshot-tests")
    assert done.returncode == 0, done.stdout
    assert f"{len(list((PAGES / 'tests').iterdir()))} passed" in done.stdout


def test_the_package_keeps_the_rules():
    done = ast_grep("scan", "--report-style=short")
    assert done.returncode == 0, done.stdout


def test_loss_of_training_and_error_of_validation_are_always_summarised(trained, event_values):
    for folder, tag, steps in (
        ("train", vocab.loss, range(10, 61, 10)),
        ("validation", vocab.error, (25, 50, 60)),
    ):
        written = [step for name, step, _ in event_values(trained / folder) if name == tag]
        assert written == list(steps), f"{folder}/{tag}"


def test_the_model_has_the_methods_that_the_engine_calls(prepared):
    from {{ cookiecutter.__package_name }}.engine.run import protocols
    from {{ cookiecutter.__package_name }}.model import Model

    asked = [name for name in vars(protocols.Model) if name[0] != "_"]
    assert set(asked) == {vocab.inference, vocab.loss, vocab.optimize, "outputs"}
    for name in asked:
        ours, theirs = (
            [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]
            for method in (getattr(protocols.Model, name), getattr(Model, name))
        )
        assert theirs[: len(ours)] == ours, name
    model = Model.for_dataset(prepared)
    assert set(protocols.Model.__annotations__) <= set(vars(model))


@pytest.fixture
def copied(tmp_path):
    """A copy of engine/ with the script that looks for edits, and what it says before there are any."""
    script = shutil.copytree(ROOT / "template", tmp_path / "template") / "engine_edits.py"
    engine = shutil.copytree(PACKAGE / "engine", tmp_path / "src" / "package" / "engine")

    def edits():
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=False
        )
        return done.returncode, set(done.stdout.splitlines())

    return engine, edits, edits()


def test_what_was_edited_in_the_engine_is_told(copied):
    """Your own engine may be edited; then updates of the template have to be merged there."""
    engine, edits, (_, before) = copied
    (engine / "run" / "loop.py").write_text("# ours now\n")
    (engine / "random.py").unlink()
    (engine / "ours.py").write_text("")
    status, lines = edits()
    expected = {"edited: engine/run/loop.py", "deleted: engine/random.py", "added: engine/ours.py"}
    assert status == 1
    assert expected <= lines
    assert lines - expected <= before


def test_line_ends_are_no_edit(copied):
    engine, edits, before = copied
    for path in engine.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert edits() == before
