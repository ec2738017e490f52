"""The default project is prepared, trained, evaluated and resumed through its command line, as its README says."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import BakedProject, Result, clean_environment, commands, in_shell, last_json, run

pytestmark = pytest.mark.slow

PHOTOS = """
from pathlib import Path
import numpy as np
from PIL import Image
pixels = np.random.default_rng(0)
for name, mode, kind in [("cat", "L", "png"), ("dog", "RGB", "jpg"), ("owl", "RGBA", "png")]:
    folder = Path("photos") / name
    folder.mkdir(parents=True)
    for n in range(20):
        size = (30 + n, 50 - n)
        values = pixels.integers(0, 255, (size[1], size[0], 4), dtype=np.uint8)
        Image.fromarray(values, "RGBA").convert(mode).save(folder / f"{n}.{kind}")
"""


@pytest.fixture
def trained(default_project: BakedProject, quick_start: dict[str, Result], tmp_path: Path) -> Path:
    """Return a copy of the run that the quick start trained."""
    return Path(shutil.copytree(default_project.path / "runs" / "baseline", tmp_path / "run"))


def test_quick_start_reaches_the_bar(
    default_project: BakedProject, quick_start: dict[str, Result]
) -> None:
    results = {
        command.split(".")[1].split()[0]: quick_start[command]
        for command in quick_start
        if "." in command
    }
    assert list(results) == ["prepare", "train", "evaluate"]
    trained = last_json(results["train"])
    assert trained.keys() == {
        *("global_step", "train_loss", "validation_loss", "validation_error"),
        *("best_error", "best_step", "examples_per_second"),
        *("loss", "error"),  # for one more release
    }
    assert trained["best_error"] <= trained["validation_error"] <= 0.03
    evaluation = last_json(results["evaluate"])
    assert evaluation["error"] <= 0.04
    written = json.loads(default_project.read("runs/baseline/evaluation-test.json"))
    assert written["error"] == evaluation["error"]


def test_recipes_of_the_readme_work(
    default_project: BakedProject, quick_start: dict[str, Result]
) -> None:
    default_project.run("python", "-c", PHOTOS)
    for command in commands(default_project.read("README.md"), "Recipes"):
        if ".train" in command and "--train_steps" not in command and "--flagfile" not in command:
            command += " --train_steps=60"  # enough to see that it works
        in_shell(default_project, command)


def test_git_sees_nothing_of_what_the_commands_write(
    default_project: BakedProject, quick_start: dict[str, Result]
) -> None:
    status = run("git", "status", "--porcelain", "data", "runs", folder=default_project.path)
    assert status.stdout == ""


def test_finished_run_does_nothing_and_says_so(
    default_project: BakedProject, trained: Path
) -> None:
    files = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    result = default_project.module("train", f"--model_dir={trained}")
    assert "is finished at step" in result.stderr
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == files


def test_larger_number_of_steps_goes_on_from_the_last(
    default_project: BakedProject, trained: Path
) -> None:
    evaluated = default_project.module("evaluate", f"--model_dir={trained}")
    before = last_json(evaluated)["global_step"]
    more = before + 100
    result = default_project.module("train", f"--model_dir={trained}", f"--train_steps={more}")
    assert last_json(result)["global_step"] == more
    assert f"training from step {before} to {more}" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a program can catch")
def test_stopped_run_resumes(
    default_project: BakedProject, quick_start: dict[str, Result], tmp_path: Path
) -> None:
    flags = ("--model_dir", str(tmp_path), "--train_steps=5000", "--checkpoint_every=100000")
    command = ("uv", "run", "python", "-m", f"{default_project.package}.train", *flags)
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=default_project.path, env=clean_environment(), stdout=output, stderr=output
        )
        deadline = time.monotonic() + 120
        while not re.search(r"step: \d", log.read_text()) and time.monotonic() < deadline:
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 42, log.read_text()
    stopped = last_json(default_project.module("evaluate", f"--model_dir={tmp_path}"))[
        "global_step"
    ]
    assert 0 < stopped < 5000
    goes_on = default_project.module(
        "train", f"--model_dir={tmp_path}", f"--train_steps={stopped + 50}"
    )
    assert last_json(goes_on)["global_step"] == stopped + 50


@pytest.mark.parametrize("command", ["prepare", "train", "evaluate", "predict", "export"])
def test_help_answers_in_two_seconds(default_project: BakedProject, command: str) -> None:
    seconds = []
    for _ in range(3):
        start = time.monotonic()
        result = default_project.module(command, "--help", status=None)
        seconds.append(time.monotonic() - start)
    assert "_dir" in result.stdout
    assert min(seconds) < 2


# Of each command; the project's own tests have many more in their process.
MISTAKES = [
    ("train", ["--data_dir=nowhere"], ".prepare --source="),
    ("train", ["--batch_size=63", "--devices=cpu:2"], "batch_size"),
    ("train", ["--no_such_flag=1"], "no_such_flag"),
    ("evaluate", ["--model_dir=nowhere"], "nowhere"),
    ("export", ["--model_dir=nowhere"], "nowhere"),
    ("predict", ["--model_dir=runs/baseline", "--input=nowhere"], "nowhere"),
    ("prepare", ["--source=digits", "--data_dir=data", "--seed=1"], "--overwrite"),
]
MORE_MISTAKES = [
    ("train", ["--batch_size=0"], "batch_size"),
    ("train", ["--train_steps=10", "--epochs=1"], "epochs"),
    ("train", ["--devices=tpu"], "devices"),
    ("train", ["--model_dir=/dev/null/run"], "model_dir"),
    ("train", ["--learning_rate=1e30"], "step"),
    ("predict", ["--export_dir=nowhere", "--input=data"], "nowhere"),
    ("prepare", ["--source=nowhere", "--data_dir=other"], "nowhere"),
]


@pytest.mark.parametrize(
    ("command", "flags", "expected"),
    [*MISTAKES, *(pytest.param(*mistake, marks=pytest.mark.release) for mistake in MORE_MISTAKES)],
)
def test_mistakes_are_told_in_one_line(
    default_project: BakedProject,
    quick_start: dict[str, Result],
    tmp_path: Path,
    command: str,
    flags: list[str],
    expected: str,
) -> None:
    if command == "train" and not any(flag.startswith("--model_dir") for flag in flags):
        flags = [f"--model_dir={tmp_path}", *flags]
    result = default_project.module(command, *flags, status=1)
    assert "Traceback" not in result.stderr
    assert expected in "\n".join(result.stderr.splitlines()[-2:])
