"""Measures the default project: uv run python benchmarks/run.py [name ...]; without names, everything, in hours.

Generates the project in build/benchmarks, trains it by its quick start, runs benchmarks/<name>.py in its environment
and writes what they found as benchmarks/results.md and results.png. What is not measured now stays as it was.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cookiecutter.main import cookiecutter

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
WORK = FOLDER.parent / "build" / "benchmarks"
PROJECT = WORK / "digit-classifier"
NAMES = (
    *(
        "training",
        "wiring",
        "reading",
        "first_step",
        "save_pause",
        "weak_scaling",
        "bake",
        "growth",
    ),
    "predict",
)
# As the project's commands bring TensorFlow in.
START = (
    "import runpy, sys; from digit_classifier.engine.system import startup; startup.import_tensorflow(); "
    "sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv[0].rpartition('/')[0]); "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def in_project(*command: str) -> None:
    """Run a command in the project, with its own environment."""
    environment = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    subprocess.run(["uv", "run", *command], cwd=PROJECT, env=environment, check=True)


def prepare() -> None:
    """Generate the project anew, with the environment, data and run that it may have."""
    cookiecutter(str(FOLDER.parent), no_input=True, output_dir=str(WORK), overwrite_if_exists=True)
    in_project("--compile-bytecode", "python", "-m", "digit_classifier.prepare")
    in_project("python", "-m", "digit_classifier.train")


def main() -> None:
    """Run what is named, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        sys.exit(f"error: no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    RESULTS.mkdir(exist_ok=True)
    prepare()
    for name in names:
        output = f"--output={RESULTS / name}.json"
        if name == "bake":  # needs cookiecutter, not TensorFlow
            subprocess.run([sys.executable, FOLDER / "bake.py", output], check=True)
        else:
            in_project("python", "-c", START, str(FOLDER / f"{name}.py"), output)
    in_project("python", str(FOLDER / "tables.py"))


if __name__ == "__main__":
    main()
