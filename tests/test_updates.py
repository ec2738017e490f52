"""A project that a team has edited takes five versions of the template with `cruft update`, and old runs go on.

Each version is a commit in a git repository of the template, made by replacing text in a copy of this one.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import BakedProject, Result, commit, git_repository, run, sync

pytestmark = pytest.mark.slow

TRAIN = ("--batch_size=32", "--evaluate_every=20", "--checkpoint_every=20", "--temperature=2")


def edit(path: Path, *replacements: tuple[str, str]) -> None:
    """Replace texts that each stand in the file once."""
    text = path.read_text(encoding="utf-8")
    for old, new in replacements:
        assert text.count(old) == 1, f"{path}: {text.count(old)} times {old!r}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Template:
    """A git repository of the template."""

    path: Path

    @property
    def root(self) -> Path:
        """What is generated."""
        [root] = self.path.glob("{{*}}")
        return root

    @property
    def package(self) -> Path:
        """What is in every project's package."""
        [package] = self.root.glob("src/{{*}}")
        return package

    def python_files(self) -> list[Path]:
        """Return the Python of the project, also that of its tasks."""
        return sorted(self.root.rglob("*.py"))

    def release(self, change: Callable[["Template"], None]) -> None:
        """Commit a new version, formatted as the generated project wants it."""
        change(self)
        style = ("--isolated", "--line-length=100", "--quiet")
        run("ruff", "format", *style, *self.package.rglob("*.py"), folder=self.path)
        commit(self.path, change.__name__)


def engine_fix(template: Template) -> None:
    """NumPy's numbers were an error in files of JSON."""
    edit(
        template.package / "engine" / "files.py",
        (
            "        if isinstance(part, dict):\n",
            '        if hasattr(part, "tolist"):\n            part = part.tolist()\n'
            "        if isinstance(part, dict):\n",
        ),
    )
    with (template.root / "tests" / "engine" / "test_files.py").open("a") as tests:
        tests.write(
            "\n\ndef test_numbers_of_numpy_are_numbers():\n    import numpy as np\n\n"
            '    assert to_json([np.float32("nan"), np.arange(2)]) == "[null, [0, 1]]"\n'
        )


LOG_SECONDS = (
    "LOG_SECONDS = flags.DEFINE_float(\n"
    '    "log_seconds",\n    10.0,\n'
    '    "Seconds between two lines on how training goes, where there is no terminal.",\n'
    "    lower_bound=0.0,\n)\n"
)
NEW_FLAG = {
    "flags.py": [
        ("CONTINUE_ON_NEW_DATA = flags.", f"{LOG_SECONDS}CONTINUE_ON_NEW_DATA = flags."),
        ("    *(WARM_START_FROM,", "    LOG_SECONDS,\n    *(WARM_START_FROM,"),
        (
            "continue_on_new_data=CONTINUE_ON_NEW_DATA.value,",
            "continue_on_new_data=CONTINUE_ON_NEW_DATA.value,\n        log_seconds=LOG_SECONDS.value,",
        ),
    ],
    "engine/options.py": [
        (
            "continue_on_new_data: bool = False",
            "continue_on_new_data: bool = False\n    log_seconds: float = 10.0",
        )
    ],
    "engine/progress.py": [
        ("now - self._logged >= _LOG_SECONDS", "now - self._logged >= self.log_seconds"),
        (
            "        self._calls = 0\n",
            "        self._calls = 0\n        self.log_seconds = _LOG_SECONDS\n",
        ),
    ],
    "engine/training.py": [
        (
            "        save = loop.Action(",
            "        self.progress.log_seconds = self.options.log_seconds\n        save = loop.Action(",
        )
    ],
}


def new_flag(template: Template) -> None:
    """--log_seconds, which is in the README too."""
    for name, replacements in NEW_FLAG.items():
        edit(template.package / name, *replacements)
    edit(
        template.root / "README.md",
        ("**Stop early.** ", "**Log less.** `--log_seconds=60`.\n\n**Stop early.** "),
    )


def renamed_function(template: Template) -> None:
    """`random.uniform` becomes `random.numbers`; the old name stays for a release."""
    for path in template.python_files():
        text = path.read_text(encoding="utf-8")
        renamed = re.sub(r"(?<![.\w])random\.uniform\b", "random.numbers", text)
        if path.parts[-2:] == ("engine", "random.py"):
            renamed = re.sub(r"(?<![.\w])uniform\(", "numbers(", renamed)
            renamed += "\n\nuniform = numbers  # its name before; goes with the next release\n"
        path.write_text(renamed, encoding="utf-8")


def new_pins(template: Template) -> None:
    """A dependency and a check."""
    edit(
        template.root / "pyproject.toml",
        ('"tqdm>=4.66,<5"', '"tqdm>=4.67,<5"'),
        ('"codespell==2.4.3"', '"codespell==2.4.1"'),
    )


def new_file(template: Template) -> None:
    """A module of the engine with its test and a line in the README; --log_seconds goes again."""
    (template.package / "engine" / "clock.py").write_text(
        '"""Time, as people read it."""\n\n\ndef minutes(seconds: float) -> str:\n'
        '    """Returns ``seconds`` as minutes and seconds."""\n'
        '    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"\n'
    )
    name = template.package.name
    (template.root / "tests" / "engine" / "test_clock.py").write_text(
        f"from {name}.engine.clock import minutes\n\n\n"
        'def test_minutes_have_two_digits_of_seconds():\n    assert minutes(65.4) == "1:05"\n'
    )
    for file, replacements in NEW_FLAG.items():
        edit(template.package / file, *[(new, old) for old, new in replacements])
    edit(template.root / "README.md", ("**Log less.** `--log_seconds=60`.\n\n", ""))


VERSIONS = (engine_fix, new_flag, renamed_function, new_pins, new_file)


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
        self.project.run("pytest", "--quiet", *tests, timeout=1800)


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
