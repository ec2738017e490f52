"""How long it takes to generate the default project, hooks and all, beside one second and beside an empty template.

Each is a call of `cookiecutter.main.cookiecutter` in a process of its own, timed there: what Python and cookiecutter
take to start is the same for every template.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import Bar, report, take_turns

REPOSITORY = Path(__file__).resolve().parent.parent
CALL = """
import sys, time
from cookiecutter.main import cookiecutter
began = time.perf_counter()
cookiecutter(sys.argv[1], no_input=True, output_dir=sys.argv[2])
print(time.perf_counter() - began)
"""


def generating(template: Path) -> float:
    """Generate a project and return the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", CALL, str(template), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    """Generate projects again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder)
        (empty / "cookiecutter.json").write_text('{"name": "project"}')
        (empty / "{{cookiecutter.name}}").mkdir()
        contenders = {
            "ours": lambda: generating(REPOSITORY),
            "one second": lambda: 1.0,
            "an empty template": lambda: generating(empty),
        }
        pairs = [
            ("generating: one second", "ours", "one second", Bar(0.5, at_most=True)),
            ("generating: an empty template", "ours", "an empty template", None),
        ]
        report(take_turns(contenders, pairs, unit="s"), arguments.output)


if __name__ == "__main__":
    main()
