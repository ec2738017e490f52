"""Kill training at random moments, resume it, and compare the end with a run that was never touched, bit for bit.

python3 benchmarks/kill_and_resume.py --runs=30 --devices=cpu

Trains the project that scripts/quickstart.py left in build/, by its own command line. Prints, for each kill, where it
fell; ends with status 1 if a run ended with other bits.
"""

import argparse
import dataclasses
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
POLL_SECONDS = 0.002
BATCH_SIZE = 64  # the default of --batch_size
# Prints a digest of everything in the last checkpoint and of all curves but the throughput.
DIGEST = """
import glob, hashlib, sys
import numpy as np
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
run, step = sys.argv[1:]
digest = hashlib.sha256()
reader = tf.train.load_checkpoint(f"{run}/checkpoints/ckpt-{step}")
for key in sorted(reader.get_variable_to_shape_map()):
    value = reader.get_tensor(key)
    digest.update(key.encode() + (value if isinstance(value, bytes) else np.asarray(value).tobytes()))
curves = []
for path in glob.glob(f"{run}/*/events.out.tfevents.*"):
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        event = Event.FromString(record)
        for value in event.summary.value:
            if value.tag != "examples_per_second":
                split = path.split("/")[-2]
                curves.append((split, value.tag, event.step, value.tensor.SerializeToString()))
assert len(curves) == len({entry[:3] for entry in curves}), "a tag has two values at one step"
digest.update(repr(sorted(curves)).encode())
print(digest.hexdigest(), len(curves))
"""


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all runs have in common."""

    python: Path
    project: Path
    package: str
    devices: str
    train_steps: int
    checkpoint_every: int
    kills: int

    def command(self, run: Path) -> list[str]:
        """Return the command that trains or resumes `run`."""
        return [
            *(str(self.python), "-m", f"{self.package}.train"),
            *("--data_dir=data", f"--model_dir={run}", f"--devices={self.devices}"),
            *(f"--train_steps={self.train_steps}", f"--checkpoint_every={self.checkpoint_every}"),
            *("--evaluate_every=250", "--summary_every=10"),
        ]

    def digest(self, run: Path) -> str:
        """Return what stands for all weights, optimizer state, metrics and curves of a finished run."""
        done = subprocess.run(
            [str(self.python), "-c", DIGEST, str(run), str(self.train_steps)],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def newest(run: Path) -> int:
    """Return the step of the newest checkpoint, 0 if there is none."""
    steps = [int(path.stem.removeprefix("ckpt-")) for path in run.glob("checkpoints/*.index")]
    return max(steps, default=0)


def train_until_killed(setting: Setting, run: Path, seconds: float) -> dict[str, object] | None:
    """Train until `seconds` after the first new checkpoint, kill, and return where the kill fell.

    None if training ended by itself before that.
    """
    before = newest(run)
    with (run.parent / f"{run.name}.log").open("ab") as log:
        process = subprocess.Popen(
            setting.command(run), cwd=setting.project, stdout=log, stderr=log
        )
        while newest(run) <= before and process.poll() is None:
            time.sleep(POLL_SECONDS)
        time.sleep(seconds)
        process.kill()
        status = process.wait()
    step = newest(run)
    writing = any(run.glob("*/.writing/*"))
    if status != -9 or step >= setting.train_steps:
        return None
    return {"after_step": step, "while_saving": writing, "seconds": round(seconds, 3)}


def one_run(
    setting: Setting, run: Path, seed: int, expected: str, duration: float
) -> tuple[bool, list[dict[str, object]]]:
    """Kill and resume one run until it ends; print where the kills fell and whether the bits are equal."""
    draw = random.Random(seed)
    kills = []
    while len(kills) < setting.kills:
        kill = train_until_killed(setting, run, draw.uniform(0, duration / (setting.kills + 1)))
        if kill is None:
            break
        kills.append(kill)
    subprocess.run(setting.command(run), cwd=setting.project, capture_output=True, check=True)
    found = setting.digest(run)
    equal = found == expected and len(kills) >= setting.kills
    print(
        json.dumps({"run": run.name, "seed": seed, "kills": kills, "bit_equal": equal}), flush=True
    )
    if equal:
        shutil.rmtree(run)
    return equal, kills


def main() -> None:
    """Train one run undisturbed, then the others with kills, and print the tally."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, default=REPOSITORY / "build" / "digit-classifier")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--kills", type=int, default=3, help="kills of each run")
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--train_steps", type=int, default=3000)
    parser.add_argument("--checkpoint_every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--parallel", type=int, default=2, help="runs at a time")
    arguments = parser.parse_args()

    project = arguments.project.resolve()
    (package,) = (path.name for path in (project / "src").iterdir() if path.is_dir())
    setting = Setting(
        project / ".venv" / "bin" / "python",
        project,
        package,
        arguments.devices,
        arguments.train_steps,
        arguments.checkpoint_every,
        arguments.kills,
    )
    folder = Path(tempfile.mkdtemp(prefix="kill-and-resume-"))
    undisturbed = folder / "undisturbed"
    done = subprocess.run(
        setting.command(undisturbed), cwd=project, capture_output=True, check=True, text=True
    )
    speed = json.loads(done.stdout.splitlines()[-1])["examples_per_second"]
    duration = arguments.train_steps * BATCH_SIZE / speed
    expected = setting.digest(undisturbed)
    print(json.dumps({"arguments": vars(arguments), "digest": expected}, default=str), flush=True)

    draw = random.Random(arguments.seed)
    seeds = [draw.randrange(2**32) for _ in range(arguments.runs)]
    with ThreadPoolExecutor(arguments.parallel) as pool:
        results = list(
            pool.map(
                lambda numbered: one_run(
                    setting, folder / f"run-{numbered[0]}", numbered[1], expected, duration
                ),
                enumerate(seeds),
            )
        )
    kills = [kill for _, kills in results for kill in kills]
    equal = sum(is_equal for is_equal, _ in results)
    saving = sum(bool(kill["while_saving"]) for kill in kills)
    print(f"{equal} of {arguments.runs} runs bit-equal; {len(kills)} kills, {saving} while saving")
    if equal < arguments.runs:
        sys.exit(f"error: look at {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
