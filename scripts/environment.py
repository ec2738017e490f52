"""The tools of this repository on a machine that has only Python, pip and git.

uv is put into `build/`, with pip's --target, which needs neither the venv module nor rights on the machine; all
else is installed by uv from `pyproject.toml`.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / "build"
SUPPORTED_PYTHON = ((3, 11), (3, 13))


def uv_requirement() -> str:
    """Return uv with its version, `uv==...`, as `pyproject.toml` pins it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in project["dependency-groups"]["dev"]:
        if isinstance(requirement, str) and requirement.startswith("uv=="):
            return requirement
    raise LookupError("pyproject.toml: no uv== in the dependency group dev")


def install_uv() -> Path:
    """Return the path of uv's program, after installing it if this version is not there yet."""
    folder = BUILD / uv_requirement().replace("==", "-")
    program = "uv.exe" if sys.platform == "win32" else "uv"
    if not (found := sorted(folder.glob(f"*/{program}"))):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--target", str(folder), uv_requirement()])
        found = sorted(folder.glob(f"*/{program}"))
    return found[0]


def clean_environment(uv: Path) -> dict[str, str]:
    """Return the environment for commands: uv first on the path, with the Python that runs this script.

    An active virtual environment, or git's variables when a hook runs this, would lead uv and git elsewhere.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment.pop("VIRTUAL_ENV", None)
    environment["PATH"] = os.pathsep.join([str(uv.parent), environment.get("PATH", os.defpath)])
    environment.setdefault("UV_PYTHON_DOWNLOADS", "never")
    # Else each of the many processes compiles TensorFlow, 15 s, where Python is told not to keep what it compiled.
    environment.setdefault("UV_COMPILE_BYTECODE", "1")
    if SUPPORTED_PYTHON[0] <= sys.version_info[:2] <= SUPPORTED_PYTHON[1]:
        environment.setdefault("UV_PYTHON", sys.executable)
    return environment


def run(
    command: Sequence[str],
    *,
    folder: Path = REPOSITORY,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Print a command, run it in `folder`, and end this script with its exit status if it fails."""
    print("$", " ".join(command), flush=True)
    status = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    if status:
        sys.exit(status if status > 0 else 128 - status)
