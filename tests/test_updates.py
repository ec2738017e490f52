"""A project that a team has edited takes five versions of the template with `cruft update`, and old runs go on."""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import BakedProject, Result, commit, git_repository, run, sync
from versions import (
    VERSIONS,
    Template,
    edit,
    engine_fix,
    new_file,
    new_flag,
    new_pins,
    renamed_function,
)

pytestmark = pytest.mark.slow

TRAIN = ("--batch_size=32", "--evaluate_every=20", "--checkpoint_every=20", "--temperature=2")


def edit_as_a_team(project: BakedProject) -> None:
    """Give the model another width and a temperature, the data a second augmentation, flags and names to match."""
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


@dataclass(frozen=True)
class Team:
    """The project of a team, its template, and what it trained on the way."""

    project: BakedProject
    template: Template

    def train(self, run_name: str, *flags: str) -> Result:
        """Train or resume `runs/<run_name>`."""
        return self.project.module("train", f"--model_dir=runs/{run_name}", *flags)

    def update(self) -> None:
        """Update the project as its README says, and commit."""
        self.project.run("template/update.py")
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
    source = Template(Path(shutil.copytree(template, folder / "tf-template")))
    git_repository(source.path)
    commit(source.path, "first")
    config = folder / "config.yaml"
    config.write_text(
        json.dumps({key: str(folder / key) for key in ("replay_dir", "cookiecutters_dir")})
    )
    create = ("create", source.path, "--no-input", "--config-file", config)
    run(sys.executable, "-m", "cruft", *create, folder=folder)
    project = BakedProject(folder / "digit-classifier", {"project_slug": "digit-classifier"})
    edit_as_a_team(project)
    git_repository(project.path)
    sync(project.path)
    commit(project.path, "Ours")
    team = Team(project, source)
    project.module("prepare", "--data_dir=data")
    team.train("old", *TRAIN, "--train_steps=20")
    return team


# What each version touches; the whole fast suite runs at the last.
TESTS = {
    engine_fix: ("tests/engine/test_files.py", "tests/test_data.py"),
    new_flag: ("tests/test_flags.py", "tests/engine/test_progress.py"),
    renamed_function: ("tests/engine/test_random.py", "tests/test_data.py", "tests/test_model.py"),
    new_pins: ("tests/test_vocab.py", "tests/engine/test_command.py"),
    new_file: (),
}


def test_five_versions_reach_an_edited_project_without_a_conflict(team: Team) -> None:
    ours = {
        path: (team.project.path / "src" / team.project.package / path).read_text(encoding="utf-8")
        for path in ("model.py", "vocab.py")
    }
    team.check("tests/test_vocab.py")
    for version in VERSIONS:
        team.template.release(version)
        team.update()
        assert not list(team.project.path.rglob("*.rej"))
        cruft = json.loads(team.project.read(".cruft.json"))
        head = run("git", "rev-parse", "HEAD", folder=team.template.path).stdout.strip()
        assert cruft["commit"] == head
        edits = team.project.run("python", "template/engine_edits.py").stdout
        assert edits == "engine/ is as the template made it\n"
        team.check(*TESTS[version])
        if version is new_flag:
            team.train("newer", *TRAIN, "--train_steps=20", "--log_seconds=0")
    for path, text in ours.items():
        assert team.project.read(f"src/{team.project.package}/{path}") == text
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


def test_a_run_whose_flag_is_gone_goes_on_and_says_so(team: Team) -> None:
    said = "flag --log_seconds no longer exists and is left out"
    flags = "--flagfile=runs/newer/flags.txt"
    again = team.project.module("train", flags, "--train_steps=40")
    assert "training from step 20 to 40" in again.stderr
    assert said in again.stderr
    evaluation = team.project.module("evaluate", "--model_dir=runs/newer")
    assert json.loads(evaluation.stdout.splitlines()[-1])["global_step"] == 40
