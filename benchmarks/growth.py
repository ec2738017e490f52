"""Whether training stays as fast and as small as data and runs grow; a perceptron, so that the rest counts.

Each measurement is a process of its own with everything on: ten times and a hundred times the examples, one shard to
a thousand, a hundred steps to a hundred thousand. Compared are examples a second and the most memory of the process.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measuring import Bar, Row, report, take_turns

EXAMPLES = (1_000, 10_000, 100_000)
SHARDS = (1, 1_000)
STEPS = (100, 1_000, 10_000, 100_000)
SHAPE = (8, 8, 1)
WARM_UP = 200
FEW_STEPS = 5_000  # of the runs that compare throughput


def work(data_dir: str, steps: int, in_memory_mb: int) -> None:
    """Train and print examples a second and the most memory in MB."""
    from digit_classifier.engine.system import startup

    startup.import_tensorflow()  # as train does
    from contenders import NETWORKS, Ours, Setting, options
    from digit_classifier.engine import dataset
    from digit_classifier.engine.examples import open_split

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a save may go on
        data = dataset.load(data_dir)
        setting = Setting(data, NETWORKS["tiny MLP"], 32, None, Path(folder))
        setting.split = open_split(data, "train", in_memory_bytes=in_memory_mb * 2**20)
        run = Ours(setting, options())
        if steps > WARM_UP:
            run.round(WARM_UP)
            steps -= WARM_UP
        rate = run.round(steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rate": rate, "peak": peak}))


def process(data_dir: Path, steps: int, in_memory_mb: int = 1_024) -> dict[str, float]:
    """Return what a process of its own printed."""
    command = [sys.executable, __file__, "--work", str(data_dir), str(steps), str(in_memory_mb)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def throughput(folder: Path) -> list[Row]:
    """Return the rows on examples and shards."""
    from contenders import prepared

    sizes = {n: prepared(folder / f"{n}", SHAPE, n).folder for n in EXAMPLES}
    counts = {n: prepared(folder / f"s{n}", SHAPE, 10_000, shards=n).folder for n in SHARDS}
    contenders: dict[str, Callable[[], float]] = {}
    for n, data in sizes.items():
        contenders[f"{n} examples"] = lambda data=data: process(data, FEW_STEPS)["rate"]
    for n, data in counts.items():
        contenders[f"{n} shards"] = lambda data=data: process(data, FEW_STEPS, 0)["rate"]
    first, middle, last = (f"{n} examples" for n in EXAMPLES)
    one, many = (f"{n} shards" for n in SHARDS)
    pairs = [
        (f"{middle}: {first}", middle, first, None),
        (f"{last}: {first}", last, first, Bar(0.9)),
        (f"{many}, read all the time: {one}", many, one, None),
    ]
    return take_turns(contenders, pairs, unit="examples/s")


def memory(folder: Path) -> list[Row]:
    """Return the rows on steps."""
    data = folder / str(EXAMPLES[0])
    contenders: dict[str, Callable[[], float]] = {
        f"{n} steps": lambda n=n: process(data, n)["peak"] for n in STEPS
    }
    base = f"{STEPS[1]} steps"
    pairs = [
        (f"{n} steps: {base}", f"{n} steps", base, Bar(1.05, at_most=True) if n > 10_000 else None)
        for n in STEPS
        if n != STEPS[1]
    ]
    return take_turns(contenders, pairs, unit="MB")


def main() -> None:
    """Print how throughput and memory compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--work", nargs=3, help="set for the processes that this one starts")
    arguments = parser.parse_args()
    if arguments.work:
        data_dir, steps, in_memory_mb = arguments.work
        work(data_dir, int(steps), int(in_memory_mb))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = throughput(Path(folder))
        report([*rows, *memory(Path(folder))], arguments.output)


if __name__ == "__main__":
    main()
