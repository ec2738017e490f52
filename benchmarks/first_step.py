"""How long it takes until the first step: a fresh start against resumes at steps 10, 10,000 and 1,000,000.

python3 benchmarks/first_step.py

The resumed runs' steps are forged: the checkpoint of a short run is saved again under another step. Starts and resumes
take turns; the time is that of the whole command with one step to take, from the start of the process to its end.
"""

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
STEPS = (10, 10_000, 1_000_000)
# Saves the checkpoint of a short run again, in copies of the run, as if it had been reached after other steps.
FORGE = """
import shutil, sys
from pathlib import Path
import tensorflow as tf
from digit_classifier.engine.saver import Saver, read, steps_in
from digit_classifier.engine.state import State
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
    """Print the median time for each step and its ratio to the fresh start, round by round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, default=REPOSITORY / "build" / "digit-classifier")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    project = arguments.project.resolve()
    python = str(project / ".venv" / "bin" / "python")

    def train_one_step(run: Path, step: int) -> float:
        began = time.perf_counter()
        subprocess.run(
            [
                *(python, "-m", "digit_classifier.train", f"--model_dir={run}"),
                *(f"--train_steps={step + 1}", "--learning_rate_schedule=constant"),
            ],
            cwd=project,
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - began

    times: dict[int, list[float]] = {step: [] for step in (0, *STEPS)}
    with tempfile.TemporaryDirectory() as folder:
        short = Path(folder) / "short"
        train_one_step(short, 0)
        subprocess.run([python, "-c", FORGE, str(short), *map(str, STEPS)], check=True)
        for number in range(arguments.rounds):
            for step in times:
                run = Path(folder) / f"{number}-{step}"
                if step:
                    shutil.copytree(f"{short}-{step}", run)
                times[step].append(train_one_step(run, step))
    print("step | seconds to the end of the first step | ratio to a fresh start")
    for step, taken in times.items():
        ratio = statistics.median(t / f for t, f in zip(taken, times[0], strict=True))
        print(f"{step} | {statistics.median(taken):.2f} | {ratio:.3f}")


if __name__ == "__main__":
    main()
