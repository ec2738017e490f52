"""Which processes train together, as TF_CONFIG or Slurm describe them."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UserError

_SLURM_TASKS = "SLURM_STEP_NUM_TASKS"
# The list of nodes is read by TensorFlow, which knows how Slurm abbreviates it.
_SLURM = (
    *(_SLURM_TASKS, "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NODELIST"),
    *("SLURM_PROCID", "SLURM_JOB_ID"),
)
_FIRST_PORT, _PORTS, _PORTS_A_JOB = 12_000, 20_000, 32  # below those that the system hands out


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers that train together, and which of them this process is."""

    workers: tuple[str, ...]
    """Their addresses, ``host:port``; the first is the chief, which writes the files of the run."""

    index: int

    def name(self, index: int) -> str:
        """Returns how to call a worker in a message."""
        return f"worker {index} ({self.workers[index]})"


def find(kind: str, environment: Mapping[str, str] = os.environ) -> Cluster | None:
    """Returns the cluster that this process is part of, None if it trains alone.

    Args:
        kind: ``none``; ``tf_config``, ``slurm``; ``auto`` takes the one whose variables are set, or none.
        environment: variables of the process; empty ones count as not set.

    Raises:
        UserError: the description is missing or wrong.
    """
    environment = {name: value for name, value in environment.items() if value}
    if kind == "tf_config" or (kind == "auto" and environment.get("TF_CONFIG")):
        return _from_tf_config(environment.get("TF_CONFIG", ""))
    if kind == "slurm" or (kind == "auto" and environment.get(_SLURM_TASKS, "1") != "1"):
        return _from_slurm(environment)
    return None


def _from_tf_config(text: str) -> Cluster | None:
    try:
        described = json.loads(text)
        jobs: dict[str, list[str]] = described["cluster"]
        task = described["task"]
        kind, index = str(task["type"]), int(task["index"])
    except (ValueError, LookupError, TypeError):
        raise UserError(
            f"TF_CONFIG={text!r}: not understood; it has to be like "
            '{"cluster": {"worker": ["host:port", "host:port"]}, "task": {"type": "worker", "index": 0}}'
        ) from None
    unknown = sorted({*jobs, kind} - {"chief", "worker"})
    if unknown:
        raise UserError(f"TF_CONFIG: there is no job {unknown[0]!r} here, only chief and worker")
    sizes = {job: len(jobs.get(job, [])) for job in ("chief", "worker")}
    if not 0 <= index < sizes[kind]:
        raise UserError(f"TF_CONFIG: {kind} {index} does not exist, it names {sizes[kind]} of them")
    workers = [*jobs.get("chief", []), *jobs.get("worker", [])]
    return _checked(workers, index + (sizes["chief"] if kind == "worker" else 0), "TF_CONFIG")


def _from_slurm(environment: Mapping[str, str]) -> Cluster | None:
    missing = [name for name in _SLURM if name not in environment]
    if missing:
        raise UserError(
            f"--cluster=slurm: {missing[0]} is not set; start the command with srun (launch/slurm.sbatch), or "
            "train alone with --cluster=none"
        )
    import tensorflow as tf

    try:
        tasks = environment["SLURM_STEP_TASKS_PER_NODE"].split(",")
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=_FIRST_PORT + int(environment["SLURM_JOB_ID"]) * _PORTS_A_JOB % _PORTS,
            # Else it runs nvidia-smi, which a CPU node does not have.
            gpus_per_node=max(int(count.partition("(")[0]) for count in tasks),
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        workers: Any = resolver.cluster_spec().as_dict()["worker"]
        return _checked(workers, int(environment["SLURM_PROCID"]), "Slurm")
    except (ValueError, LookupError):
        found = ", ".join(f"{name}={environment[name]!r}" for name in _SLURM)
        raise UserError(
            f"--cluster=slurm: {found}: not understood; start the command with srun (launch/slurm.sbatch), or "
            "train alone with --cluster=none"
        ) from None


def _checked(workers: Sequence[str], index: int, source: str) -> Cluster | None:
    for address in workers:
        host, _, port = str(address).rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise UserError(f"{source}: {address!r} is no address; it has to be like host:port")
        if workers.count(address) > 1:
            raise UserError(f"{source}: {address} stands for more than one worker")
    return Cluster(tuple(workers), index) if len(workers) > 1 else None
