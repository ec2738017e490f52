"""How long it takes to generate the default project: the whole command, hooks and all, beside one second."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import ROUNDS, Bar, Row, report

REPOSITORY = Path(__file__).resolve().parent.parent
CALL = """
import sys, time
from cookiecutter.main import cookiecutter
began = time.perf_counter()
cookiecutter(sys.argv[1], no_input=True, output_dir=sys.argv[2])
print(time.perf_counter() - began)
"""


def main() -> None:
    """Generate it again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    calls, commands = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", CALL, str(REPOSITORY), folder],
                capture_output=True,
                text=True,
                check=True,
            )
            commands.append(time.perf_counter() - began)
            calls.append(float(done.stdout.splitlines()[-1]))
    seconds = [1.0] * ROUNDS
    rows = [
        Row("generating: one second", calls, seconds, "s", Bar(0.5, at_most=True)),
        Row("the same with the start of cookiecutter: one second", commands, seconds, "s"),
    ]
    report(rows, arguments.output)


if __name__ == "__main__":
    main()
