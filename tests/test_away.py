"""An export of the default project in an environment that has TensorFlow and nothing of the project."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from conftest import BakedProject, Result, run

pytestmark = pytest.mark.slow

ELSEWHERE = re.compile(r"^```python\n(import numpy as np\nimport restored\n.*?)^```", re.M | re.S)


def test_the_lines_of_the_readme_predict_and_train_on(
    default_project: BakedProject, quick_start: dict[str, Result], tmp_path: Path
) -> None:
    printed = default_project.module("export", "--model_dir=runs/baseline").stdout
    exported = default_project.path / printed.strip()
    assert exported.name == "1"
    shutil.copytree(exported, tmp_path / "export" / "1")
    package = default_project.path / "src" / default_project.package
    shutil.copy(package / "engine" / "export" / "restored.py", tmp_path)
    found = ELSEWHERE.search(default_project.read("README.md"))
    assert found is not None
    script = tmp_path / "elsewhere.py"
    script.write_text(found[1], encoding="utf-8")
    dependencies = tomllib.loads(default_project.read("pyproject.toml"))["project"]["dependencies"]
    [tensorflow] = [name for name in dependencies if name.startswith("tensorflow>=")]
    run("uv", "venv", "--quiet", "venv", folder=tmp_path)
    run("uv", "pip", "install", "--quiet", "--python", "venv", tensorflow, folder=tmp_path)
    installed = run("uv", "pip", "list", "--python", "venv", folder=tmp_path).stdout
    assert default_project.answers["project_slug"] not in installed
    assert "absl-py" in installed
    result = run("venv/bin/python", script, folder=tmp_path, timeout=300)
    for expected in (
        "shape=(3, 10)",
        "shape=(3,)",
        "numpy=2100",
        "'logits': array(",
        "'inference': array(",
    ):
        assert expected in result.stdout, expected
