"""Keep the parts that were chosen, name the package in the tests and print the next commands.

It runs in the new project's folder. Standard library only, no network, no git: what this hook does, `cruft update`
does again.
"""

import hashlib
import json
import shutil
from pathlib import Path

# One raw string keeps this file valid Python before rendering; tojson escapes every quote and backslash.
ANSWERS = r"""{{ cookiecutter | tojson }}"""

# What each choice of `ci` keeps; what only the other choices keep is deleted.
CI_FILES = {"github": [".github"], "gitlab": [".gitlab-ci.yml", "renovate.json"], "none": []}


def choose_task(project: Path, task: str) -> None:
    """Move the files of the chosen task to where they belong and delete those of the others."""
    files = project / "tasks" / task
    for source in sorted(path for path in files.rglob("*") if path.is_file()):
        target = project / source.relative_to(files)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
    shutil.rmtree(project / "tasks")


def name_package(project: Path, package: str) -> None:
    """Write the package's name into tests and recipes, which cookiecutter copies: rendering takes longer."""
    placeholder = "{" * 2 + " cookiecutter.__package_name " + "}" * 2
    for path in sorted([*(project / "tests").rglob("*.py"), *(project / "docs").rglob("*.md")]):
        path.write_bytes(path.read_bytes().replace(placeholder.encode(), package.encode()))


def choose_license(project: Path, license_name: str) -> None:
    """Move the chosen text to LICENSE and delete the others."""
    (project / "licenses" / license_name).replace(project / "LICENSE")
    shutil.rmtree(project / "licenses")


def choose_ci(project: Path, ci: str) -> None:
    """Delete the files of the continuous integration services that were not chosen."""
    for path in sorted({path for paths in CI_FILES.values() for path in paths} - set(CI_FILES[ci])):
        target = project / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def record_engine(project: Path, package: str) -> None:
    """Write the digest of every file of the engine to where `template/engine_edits.py` looks for it."""
    engine = project / "src" / package / "engine"
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(engine).as_posix()}\n"
        for path in sorted(engine.rglob("*.py"))
    ]
    (project / "template" / "engine.sha256").write_bytes("".join(lines).encode())


def next_commands(answers: dict[str, str]) -> str:
    """Return what to type next, from the folder in which the project was generated."""
    package = answers["__package_name"]
    return "\n".join(
        [
            "",
            f"Your project is in {answers['project_slug']}/. Next:",
            "",
            f"  cd {answers['project_slug']}",
            "  uv sync",
            f"  uv run python -m {package}.prepare --data_dir=data",
            f"  uv run python -m {package}.train --model_dir=runs/baseline",
            f"  uv run python -m {package}.evaluate --model_dir=runs/baseline --split=test",
            "",
            "Before the first commit:",
            "",
            "  git init",
            "  uv run pre-commit install",
            "",
        ]
    )


def main() -> None:
    """Finish the project in the current folder."""
    answers = json.loads(ANSWERS)
    project = Path.cwd()
    choose_task(project, answers["task"])
    name_package(project, answers["__package_name"])
    choose_license(project, answers["license"])
    choose_ci(project, answers["ci"])
    record_engine(project, answers["__package_name"])
    print(next_commands(answers))


if __name__ == "__main__":
    main()
