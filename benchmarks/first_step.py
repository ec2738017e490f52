"""How long it takes until the first step: resumes at steps 10, 10,000 and 1,000,000 against a fresh start.

The resumed runs' steps are forged: the checkpoint of a short run is saved again under another step. Starts and resumes
take turns; the time is that of the whole command with one step to take, from the start of the process to its end.
"""

import argparse
import itertools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measuring import Bar, report, take_turns

STEPS = (10, 10_000, 1_000_000)
# Saves the checkpoint of a short run again, in copies of the run, as if it had been reached after other steps.
FORGE = """
import shutil, sys
from pathlib import Path
import tensorflow as tf
from digit_classifier.engine.run.checkpoints import read, steps_in
from digit_classifier.engine.run.checkpoints import Saver
from digit_classifier.engine.run.state import State
run, *steps = sys.argv[1:]
for step in map(int, steps):
    folder = Path(shutil.copytree(run, f"{run}-{step}")) / "checkpoints"
    values = read(folder / f"ckpt-{steps_in(folder)[-1]}")
    state = State.from_json(values.pop("state"))
    values["global_step"] = values["global_step"] * 0 + step
    saver = Saver(folder, {key: tf.Variable(value) for key, value in values.items()})
    saver.save(step, state, keep=[step])
    saver.wait()
"""


def main() -> None:
    """Compare the seconds of the whole command with one step to take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    number = itertools.count()

    def train_one_step(run: Path, step: int) -> float:
        began = time.perf_counter()
        subprocess.run(
            [
                *(sys.executable, "-m", "digit_classifier.train", f"--model_dir={run}"),
                *(f"--train_steps={step + 1}", "--learning_rate_schedule=constant"),
            ],
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - began

    with tempfile.TemporaryDirectory() as folder:
        short = Path(folder) / "short"
        train_one_step(short, 0)
        subprocess.run([sys.executable, "-c", FORGE, str(short), *map(str, STEPS)], check=True)

        def start_at(step: int) -> float:
            run = Path(folder) / str(next(number))
            if step:
                shutil.copytree(f"{short}-{step}", run)
            return train_one_step(run, step)

        contenders: dict[str, Callable[[], float]] = {
            str(step): lambda step=step: start_at(step) for step in (0, *STEPS)
        }
        pairs = [
            (f"step {step:,}: fresh start", str(step), "0", bar)
            for step, bar in zip(STEPS, (None, None, Bar(1.1, at_most=True)), strict=True)
        ]
        report(take_turns(contenders, pairs, unit="s"), arguments.output)


if __name__ == "__main__":
    main()
