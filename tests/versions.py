"""The template's last release, the one in this repository, and five changes of that, for the tests of updates."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import REPOSITORY, commit, run

LAST_RELEASE = "122dc397230eabcf9fdd562f5c3e0776483f294a"


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
    present: Path
    """The template as it is in this repository, without its history."""

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


def replace(folder: Path, source: Path) -> None:
    """Make all files of a git repository those of another folder."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != ".git":
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))


def last_release(folder: Path) -> None:
    """Write the template's last release into a folder."""
    archive = folder.with_suffix(".tar")
    command = ("git", "archive", f"--output={archive}", LAST_RELEASE)
    if run(*command, folder=REPOSITORY, status=None).returncode:
        pytest.fail(
            f"commit {LAST_RELEASE}, the last release, is not in this clone: `git fetch --unshallow` brings it"
        )
    shutil.unpack_archive(archive, folder, filter="data")


def this_template(template: Template) -> None:
    """Everything since the last release."""
    replace(template.path, template.present)


def engine_fix(template: Template) -> None:
    """NumPy's numbers were an error in files of JSON."""
    edit(
        template.package / "engine" / "system" / "files.py",
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
    "engine/run/progress.py": [
        ("now - self._logged >= _LOG_SECONDS", "now - self._logged >= self.log_seconds"),
        (
            "        self._calls = self._examples = 0\n",
            "        self._calls = self._examples = 0\n        self.log_seconds = _LOG_SECONDS\n",
        ),
    ],
    "engine/run/trainer.py": [
        (
            "        profiler = Profiler(",
            "        self.progress.log_seconds = self.options.log_seconds\n        profiler = Profiler(",
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
    (template.root / "tests" / "engine" / "test_clock.py").write_text(
        "from {{ cookiecutter.__package_name }}.engine.clock import minutes\n\n\n"
        'def test_minutes_have_two_digits_of_seconds():\n    assert minutes(65.4) == "1:05"\n'
    )
    for file, replacements in NEW_FLAG.items():
        edit(template.package / file, *[(new, old) for old, new in replacements])
    edit(template.root / "README.md", ("**Log less.** `--log_seconds=60`.\n\n", ""))


VERSIONS = (this_template, engine_fix, new_flag, renamed_function, new_pins, new_file)
