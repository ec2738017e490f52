"""Kill training at random moments, resume it, and compare the end with a run that was never touched, bit for bit.

python3 benchmarks/kill_and_resume.py --runs=30 --devices=cpu

Trains the project that scripts/quickstart.py left in build/, by its own command line. Prints, for each kill, where it
fell; ends with status 1 if a run ended with other bits.
"""

import argparse
import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
POLL_SECONDS = 0.002
IN_A_SAVE = 0.4  # share of the kills that wait for a save; the others fall where they fall
# Prints, for each run, a digest of all in its last and best checkpoints and of all its curves but those of time.
DIGEST = """
import glob, hashlib, sys
import numpy as np
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
step, *runs = sys.argv[1:]
for run in runs:
    digest = hashlib.sha256()
    for index in sorted(glob.glob(f"{run}/best/*.index")) + [f"{run}/checkpoints/ckpt-{step}.index"]:
        reader = tf.train.load_checkpoint(index.removesuffix(".index"))
        for key in sorted(reader.get_variable_to_shape_map()):
            value = reader.get_tensor(key)
            digest.update(key.encode())
            digest.update(value if isinstance(value, bytes) else np.asarray(value).tobytes())
    curves = []
    for path in glob.glob(f"{run}/*/events.out.tfevents.*"):
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            event = Event.FromString(record)
            for value in event.summary.value:
                if value.tag not in ("examples_per_second", "input_wait"):
                    name = (path.split("/")[-2], value.tag, event.step)
                    curves.append((name, value.tensor.SerializeToString()))
    digest.update(repr(sorted(curves)).encode())
    repeated = len(curves) - len({name for name, _ in curves})
    print(digest.hexdigest()[:16], len(curves), "values in curves,", repeated, "repeated")
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
            *("--evaluate_every=50", "--summary_every=10", "--keep_best=2"),
        ]

    def digests(self, runs: Sequence[Path]) -> list[str]:
        """Return what stands for all weights, optimizer state, metrics and curves of finished runs."""
        return subprocess.run(
            [str(self.python), "-c", DIGEST, str(self.train_steps), *map(str, runs)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()


def newest(run: Path) -> int:
    """Return the step of the newest checkpoint, 0 if there is none."""
    steps = [int(path.stem.removeprefix("ckpt-")) for path in run.glob("checkpoints/*.index")]
    return max(steps, default=0)


def saving(run: Path) -> bool:
    """Return whether files of a checkpoint are being written."""
    try:
        return bool(os.listdir(run / "checkpoints" / ".writing"))
    except FileNotFoundError:  # it is made anew for each save
        return False


def train_until_killed(
    setting: Setting, run: Path, seconds: float, *, in_a_save: bool
) -> dict[str, object] | None:
    """Train until `seconds` after the first new checkpoint, kill, and return where the kill fell.

    With `in_a_save` the kill waits for the next save to begin. None if training ended by itself before.
    """
    before = newest(run)
    with (run.parent / f"{run.name}.log").open("ab") as log:
        process = subprocess.Popen(
            setting.command(run), cwd=setting.project, stdout=log, stderr=log
        )
        while newest(run) <= before and process.poll() is None:
            time.sleep(POLL_SECONDS)
        time.sleep(seconds)
        while in_a_save and not saving(run) and process.poll() is None:
            pass
        process.kill()
        status = process.wait()
    step = newest(run)
    if status != -9 or step >= setting.train_steps:
        return None
    return {"after_step": step, "while_saving": saving(run), "seconds": round(seconds, 3)}


def one_run(setting: Setting, run: Path, seed: int, duration: float) -> list[dict[str, object]]:
    """Kill and resume one run until it ends; print and return where the kills fell."""
    draw = random.Random(seed)
    kills = []
    while len(kills) < setting.kills:
        seconds = draw.uniform(0, duration / (setting.kills + 1))
        in_a_save = draw.random() < IN_A_SAVE
        kill = train_until_killed(setting, run, seconds, in_a_save=in_a_save)
        if kill is None:
            break
        kills.append(kill)
    subprocess.run(setting.command(run), cwd=setting.project, capture_output=True, check=True)
    print(json.dumps({"run": run.name, "seed": seed, "kills": kills}), flush=True)
    return kills


def main() -> None:
    """Train one run undisturbed, then the others with kills, and print the tally."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, default=REPOSITORY / "build" / "digit-classifier")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--kills", type=int, default=3, help="kills of each run")
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--train_steps", type=int, default=2000)
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
    subprocess.run(setting.command(undisturbed), cwd=project, capture_output=True, check=True)
    begun, ended = (undisturbed / name for name in ("flags.txt", "manifest.json"))
    duration = ended.stat().st_mtime - begun.stat().st_mtime
    print(json.dumps({"arguments": vars(arguments)}, default=str), flush=True)

    draw = random.Random(arguments.seed)
    seeds = [draw.randrange(2**32) for _ in range(arguments.runs)]
    runs = [folder / f"run-{number}" for number in range(arguments.runs)]
    with ThreadPoolExecutor(arguments.parallel) as pool:
        kills = list(pool.map(lambda run, seed: one_run(setting, run, seed, duration), runs, seeds))
    expected, *found = setting.digests([undisturbed, *runs])
    print("undisturbed:", expected)
    for run, digest in zip(runs, found, strict=True):
        print(f"{run.name}: {digest}")
    equal = sum(
        digest == expected and len(its_kills) >= setting.kills
        for digest, its_kills in zip(found, kills, strict=True)
    )
    fell = [kill for its_kills in kills for kill in its_kills]
    inside = sum(bool(kill["while_saving"]) for kill in fell)
    print(f"{equal} of {arguments.runs} runs bit-equal; {len(fell)} kills, {inside} while saving")
    if equal < arguments.runs:
        sys.exit(f"error: look at {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
