"""A project of the last release that a team has edited takes six versions with `cruft update`, and old runs go on."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import BakedProject, Result, commit, git_repository, run, sync
from versions import (
    VERSIONS,
    Template,
    edit,
    engine_fix,
    last_release,
    new_file,
    new_flag,
    new_pins,
    renamed_function,
    this_template,
)

pytestmark = pytest.mark.slow

TRAIN = ("--batch_size=32", "--evaluate_every=20", "--checkpoint_every=20", "--temperature=2")


def edit_as_a_team(project: BakedProject) -> None:
    """Give the model another width and a temperature, the data a second augmentation, flags and names to match.

    As the last release asked for it: there, `train.py` handed each flag of the model on.
    """
    package = project.path / "src" / project.package
    edit(
        package / "model.py",
        ("enumerate((16, 32), start=1)", "enumerate((24, 40), start=1)"),
        (
            "        dropout_rate: float = 0.0,\n",
            "        dropout_rate: float = 0.0,\n        temperature: float = 1.0,\n",
        ),
        (
            "            dropout_rate: share of activations dropped in training.\n",
            "            dropout_rate: share of activations dropped in training.\n"
            "            temperature: divides the logits, so that probabilities are less sure.\n",
        ),
        (
            "        self.seed = seed\n",
            "        self.seed = seed\n        self.temperature = temperature\n",
        ),
        (
            "        return tf.identity(tf.nn.softmax(self._logits(x)), name=vocab.inference)\n",
            "        logits = self._logits(x) / self.temperature\n"
            "        logits = tf.identity(logits, name=vocab.cooled_logits)\n"
            "        return tf.identity(tf.nn.softmax(logits), name=vocab.inference)\n",
        ),
    )
    edit(
        package / "vocab.py",
        (
            '    examples: str = "examples"\n',
            '    cooled_logits: str = "cooled_logits"\n    """Logits divided by the temperature."""\n\n'
            '    examples: str = "examples"\n',
        ),
    )
    edit(
        package / "flags.py",
        (
            "CLIP_NORM = flags.",
            "TEMPERATURE = flags.DEFINE_float(\n"
            '    "temperature",\n    1.0,\n'
            '    "Divides the logits in predictions; higher makes probabilities less sure.",\n'
            "    lower_bound=0.001,\n)\nCLIP_NORM = flags.",
        ),
        ("TRAIN = (\n", "TRAIN = (\n    TEMPERATURE,\n"),
    )
    edit(
        package / "train.py",
        (
            "        dropout_rate=flags.DROPOUT_RATE.value,\n",
            "        dropout_rate=flags.DROPOUT_RATE.value,\n"
            "        temperature=flags.TEMPERATURE.value,\n",
        ),
    )
    edit(
        package / "data.py",
        ("_LARGEST_SHIFT = 0.1  #", "_DARKEST = 0.8\n_LARGEST_SHIFT = 0.1  #"),
        (
            "    x = batch[vocab.x]\n",
            "    x = _darkened(batch[vocab.x], seed, step, first)\n",
        ),
        (
            "\n\ndef _shifted(",
            "\n\ndef _darkened(x: tf.Tensor, seed: int, step: tf.Tensor, first: tf.Tensor) -> tf.Tensor:\n"
            '    """Returns the images, each darker by a factor of its own."""\n'
            '    drawn = random.uniform(seed, "darken", step, first, [tf.shape(x)[0], 1, 1, 1])\n'
            "    factor = _DARKEST + (1 - _DARKEST) * drawn\n"
            "    return tf.cast(tf.cast(x, tf.float32) * factor, x.dtype)\n"
            "\n\ndef _shifted(",
        ),
    )
    # Its tests follow what they changed.
    edit(
        project.path / "tests" / "test_data.py",
        (
            '@pytest.fixture(scope="module")\ndef images',
            "@pytest.fixture(autouse=True)\ndef bright(monkeypatch):\n"
            '    """Where pixels go is tested in full light."""\n'
            '    monkeypatch.setattr(data, "_DARKEST", 1.0)\n\n\n'
            '@pytest.fixture(scope="module")\ndef images',
        ),
    )
    edit(
        project.path / "README.md",
        (
            "\n## Quick start\n",
            "\nAsk the team of the reading room before you change a default.\n\n## Quick start\n",
        ),
        (
            "\n## Questions\n",
            "\n## Our runs\n\nThe best so far is `runs/baseline`.\n\n## Questions\n",
        ),
    )


# What a team's edits stand in, and no update may take away.
OWN = ("model", "vocab", "data", "flags")


def own_code(project: BakedProject) -> list[str]:
    """Return the lines of the files that a team edits."""
    return [
        line
        for name in OWN
        for line in project.read(f"src/{project.package}/{name}.py").splitlines()
    ]


@dataclass(frozen=True)
class Team:
    """The project of a team, its template, and what it trained on the way."""

    project: BakedProject
    template: Template
    lines: Sequence[str]
    """What it wrote into its own files."""

    def train(self, run_name: str, *flags: str) -> Result:
        """Train or resume `runs/<run_name>`."""
        return self.project.module("train", f"--model_dir=runs/{run_name}", *flags)

    def update(self, to_merge: frozenset[str]) -> None:
        """Update the project as its README says, take the template's version of what conflicts, and commit."""
        said = self.project.run("template/update.py", status=None)
        conflicts = re.findall(r"^to merge by hand: (.*)$", said.stdout, re.MULTILINE)
        assert set(conflicts) <= to_merge, said.stdout + said.stderr
        assert said.returncode == bool(conflicts), said.stdout + said.stderr
        if conflicts:
            run("git", "checkout", "--theirs", *conflicts, folder=self.project.path)
        sync(self.project.path)
        commit(self.project.path, "Update from the template")

    def check(self, *tests: str) -> None:
        """Run what a commit and CI would run, the fast tests or those that are named."""
        self.project.run("pre-commit", "run", "--all-files")
        assert run("git", "status", "--porcelain", folder=self.project.path).stdout == ""
        chosen = tests or ("-n", "auto", "--dist", "loadfile")
        self.project.run("pytest", "--quiet", *chosen, timeout=1800)


@pytest.fixture(scope="module")
def team(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Make a project with cruft, edit it, commit it and train."""
    folder = tmp_path_factory.mktemp("team")
    source = Template(folder / "tf-template", present=template)
    last_release(source.path)
    git_repository(source.path)
    commit(source.path, "first")
    config = folder / "config.yaml"
    config.write_text(
        json.dumps({key: str(folder / key) for key in ("replay_dir", "cookiecutters_dir")})
    )
    create = ("create", source.path, "--no-input", "--config-file", config)
    run(sys.executable, "-m", "cruft", *create, folder=folder)
    project = BakedProject(folder / "digit-classifier", {"project_slug": "digit-classifier"})
    before = set(own_code(project))
    edit_as_a_team(project)
    lines = [line for line in own_code(project) if line not in before]
    git_repository(project.path)
    sync(project.path)
    commit(project.path, "Ours")
    team = Team(project, source, lines)
    project.module("prepare", "--data_dir=data")
    team.train("old", *TRAIN, "--train_steps=20")
    return team


# What each version touches; the whole fast suite runs at the last.
TESTS = {
    this_template: ("tests/test_flags.py", "tests/test_data.py", "tests/test_model.py"),
    engine_fix: ("tests/engine/test_files.py", "tests/test_data.py"),
    new_flag: ("tests/test_flags.py", "tests/engine/test_progress.py"),
    renamed_function: ("tests/engine/test_random.py", "tests/test_data.py", "tests/test_model.py"),
    new_pins: ("tests/test_vocab.py", "tests/engine/test_command.py"),
    new_file: (),
}


# Since this release, one function hands the flags of a model on: what CHANGELOG.md says under "You have to".
TO_MERGE = {this_template: frozenset({"src/digit_classifier/train.py"})}


def test_six_versions_reach_an_edited_project_and_leave_what_is_its_own(team: Team) -> None:
    assert len(team.lines) > 20
    for version in VERSIONS:
        team.template.release(version)
        team.update(TO_MERGE.get(version, frozenset()))
        assert not list(team.project.path.rglob("*.rej"))
        cruft = json.loads(team.project.read(".cruft.json"))
        head = run("git", "rev-parse", "HEAD", folder=team.template.path).stdout.strip()
        assert cruft["commit"] == head
        edits = team.project.run("python", "template/engine_edits.py").stdout
        assert edits == "engine/ is as the template made it\n"
        team.check(*TESTS[version])
        if version is new_flag:
            team.train("newer", *TRAIN, "--train_steps=20", "--log_seconds=0")
        code = own_code(team.project)
        assert [line for line in team.lines if line not in code] == []
    readme = team.project.read("README.md")
    assert "team of the reading room" in readme
    assert "## Our runs" in readme


def test_a_run_from_before_the_updates_goes_on_and_is_evaluated_and_reported(team: Team) -> None:
    result = team.train("old", *TRAIN, "--train_steps=40")
    assert "training from step 20 to 40" in result.stderr
    assert json.loads(result.stdout.splitlines()[-1])["global_step"] == 40
    evaluation = team.project.module("evaluate", "--model_dir=runs/old", "--split=test")
    assert json.loads(evaluation.stdout.splitlines()[-1])["global_step"] == 40
    assert "<html" in team.project.read("runs/old/report.html")


SOFTER = """
import csv
import sys

import numpy as np
from digit_classifier.engine.export import restored
from digit_classifier.inputs import open_inputs

export, *predictions = sys.argv[1:]
inference = restored.load(export).inference
files = open_inputs(["pictures"], {"x": {"dtype": "uint8", "shape": [None, 8, 8, 1]}})
x = np.stack([files.read(number)["x"] for number in range(len(files.names))])
logits = restored.run(inference, ["logits"], {"x": x})["logits"] / 2.0
softened = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
for path in predictions:
    with open(path, newline="") as file:
        found = [[float(row[f"inference/{digit}"]) for digit in range(10)] for row in csv.DictReader(file)]
    assert np.abs(np.array(found) - softened).max() < 1e-5, path
assert np.abs(np.exp(2 * logits).T / np.exp(2 * logits).sum(axis=1) - softened.T).max() > 0.01
"""
PICTURES = """
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits

Path("pictures").mkdir()
for number, image in enumerate(load_digits().images[:20]):
    Image.fromarray((image * 255 / 16).astype("uint8")).save(f"pictures/{number:02}.png")
"""


def test_predict_and_export_divide_by_the_temperature_of_the_run(team: Team) -> None:
    """A flag of the model reaches every command, though a team named it in `flags.py` and `model.py` alone."""
    project = team.project
    project.run("python", "-c", PICTURES)
    predict = ("predict", "--input=pictures")
    project.module(*predict, "--model_dir=runs/old", "--output=of_run.csv")
    export = project.module("export", "--model_dir=runs/old").stdout.strip()
    project.module(*predict, f"--export_dir={export}", "--output=of_export.csv")
    project.run("python", "-c", SOFTER, export, "of_run.csv", "of_export.csv")


def test_a_run_whose_flag_is_gone_goes_on_and_says_so(team: Team) -> None:
    said = "flag --log_seconds no longer exists and is left out"
    flags = "--flagfile=runs/newer/flags.txt"
    again = team.project.module("train", flags, "--train_steps=40")
    assert "training from step 20 to 40" in again.stderr
    assert said in again.stderr
    evaluation = team.project.module("evaluate", "--model_dir=runs/newer")
    assert json.loads(evaluation.stdout.splitlines()[-1])["global_step"] == 40
