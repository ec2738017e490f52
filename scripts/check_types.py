"""Check the types of the generated package: python scripts/check_types.py.

The files of the template are laid out as `hooks/post_gen_project.py` does, for each task, and checked where they get a
name that Python can import. TensorFlow and its kind need not be installed: what comes from them has any type. The
generated project checks itself with all of them.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TASKS = json.loads((REPOSITORY / "cookiecutter.json").read_text(encoding="utf-8"))["task"]
# As [tool.mypy] of a generated project, where packages are missing.
OPTIONS = ("--strict-equality", "--check-untyped-defs", "--disallow-incomplete-defs")


def main() -> int:
    """Return the highest exit status of mypy."""
    [project] = REPOSITORY.glob("*cookiecutter.project_slug*")
    [shared] = (project / "src").iterdir()
    status = 0
    for task in TASKS:
        [own] = (project / "tasks" / task / "src").iterdir()
        with tempfile.TemporaryDirectory() as folder:
            for part in (shared, own):
                shutil.copytree(part, Path(folder) / task, dirs_exist_ok=True)
            mypy = (sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports")
            done = subprocess.run([*mypy, *OPTIONS, "--package", task], cwd=folder, check=False)
            status = max(status, done.returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
