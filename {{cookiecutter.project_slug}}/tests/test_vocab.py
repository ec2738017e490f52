import ast
import inspect
import re
from pathlib import Path

from {{ cookiecutter.__package_name }}.vocab import Vocabulary, per_variable, vocab

PACKAGE = Path(inspect.getfile(Vocabulary)).parent


def test_every_name_is_spelled_like_its_field_and_can_name_an_operation():
    for field, name in vocab._asdict().items():
        assert name == field
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)


def test_every_name_is_described():
    (definition,) = ast.parse(inspect.getsource(Vocabulary)).body
    assert isinstance(definition, ast.ClassDef)
    body = definition.body[1:]  # after the class's own description
    names = [node.target.id for node in body[::2]]  # type: ignore[attr-defined]
    texts = [node.value.value for node in body[1::2]]  # type: ignore[attr-defined]
    assert names == list(Vocabulary._fields)
    assert all(re.fullmatch(r"[A-Z]\w*[^`]* .*\.", text, re.DOTALL) for text in texts)


def test_what_exists_for_each_variable_is_a_name_and_its_path():
    assert per_variable(vocab.gradient_norm, "conv_1/kernel") == "gradient_norm/conv_1/kernel"


def test_no_string_spells_a_name_of_the_vocabulary():
    """Flags have names of their own, and an option may be called what a metric is called."""
    elsewhere = {PACKAGE / name for name in ("vocab.py", "flags.py", "task_flags.py")}
    found = [
        f"{path.relative_to(PACKAGE.parents[1])}:{node.lineno}: write vocab.{node.value} for {node.value!r}"
        for path in sorted(set(PACKAGE.rglob("*.py")) - elsewhere)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in vocab
    ]
    assert not found, f"conventions/names-from-vocab.md: {found}"
