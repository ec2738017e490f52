"""The generated job script on a real Slurm cluster of one node: two workers train, are sent back, and go on."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, BakedProject, run

pytestmark = pytest.mark.slow

SLURM = {"SLURM_CONF": str(REPOSITORY / "build" / "slurm" / "slurm.conf")}
STEPS = 1500
FLAGS = (f"--train_steps={STEPS}", "--checkpoint_every=50", "--evaluate_every=500")

SAME_BITS = f"""
import sys
import tensorflow as tf

first, second = (tf.train.load_checkpoint(f"{{run}}/checkpoints/ckpt-{STEPS}") for run in sys.argv[1:])
keys = first.get_variable_to_shape_map().keys()
assert keys == second.get_variable_to_shape_map().keys()
for key in keys:
    one, other = first.get_tensor(key), second.get_tensor(key)
    assert one == other if isinstance(one, bytes) else one.tobytes() == other.tobytes(), key
print("equal")
"""


def slurm(*command: str, folder: Path = REPOSITORY) -> str:
    return run(*command, folder=folder, environment=SLURM).stdout


@pytest.fixture(scope="module")
def cluster() -> None:
    if (
        not shutil.which("sbatch")
        or run("sinfo", folder=REPOSITORY, status=None, environment=SLURM).returncode
    ):
        problem = "no Slurm cluster here: scripts/services.py starts one, on Debian as root"
        if os.environ.get("TF_TEMPLATE_SERVICES") == "required":
            pytest.fail(problem)
        pytest.skip(problem)


@pytest.fixture(scope="module")
def submit(cluster: None, default_project: BakedProject) -> Callable[[str], str]:
    """Returns a function that submits the generated job script and returns the number of the job."""
    data = default_project.path / "data_slurm"
    default_project.module("prepare", "--source=digits", f"--data_dir={data}")

    def submit(model_dir: str) -> str:
        script = ("launch/slurm.sbatch", f"--data_dir={data}", f"--model_dir={model_dir}", *FLAGS)
        return slurm("sbatch", "--parsable", *script, folder=default_project.path).strip()

    return submit


def wait_until(reached: Callable[[], bool], log: Path, seconds: float = 420) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, log.read_text() if log.exists() else "never ran"
        time.sleep(0.5)


def ended(job: str) -> bool:
    return "JobState=COMPLETED" in slurm("scontrol", "show", "job", job)


def test_a_job_that_is_requeued_ends_with_the_bits_of_one_that_was_not(
    submit: Callable[[str], str], default_project: BakedProject
) -> None:
    folder = default_project.path
    undisturbed = submit("runs/undisturbed")
    wait_until(lambda: ended(undisturbed), folder / f"slurm-{undisturbed}.log")

    requeued = submit("runs/requeued")
    log = folder / f"slurm-{requeued}.log"
    wait_until(lambda: (folder / "runs/requeued/checkpoints/ckpt-100.index").exists(), log)
    slurm("scontrol", "requeue", requeued)
    wait_until(lambda: "JobState=PENDING" in slurm("scontrol", "show", "job", requeued), log)
    # By itself it waits for two minutes. Sooner than a few seconds the node takes it for the job that it just killed.
    slurm("scontrol", "update", f"JobId={requeued}", "StartTime=now+10")
    wait_until(lambda: ended(requeued), log)

    manifest = json.loads((folder / "runs/requeued/manifest.json").read_text())
    assert manifest["replicas"] == 2
    events = [(event["event"], event["step"]) for event in manifest["history"]]
    assert events[0] == ("start", 0)
    assert events[-1] == ("finish", STEPS)
    [resumed] = [step for event, step in events if event == "resume"]
    assert 0 < resumed < STEPS
    compared = default_project.run("python", "-c", SAME_BITS, "runs/undisturbed", "runs/requeued")
    assert compared.stdout.strip() == "equal"
