"""Install and start what some tests need beside Python, on Debian as root: python3 scripts/services.py.

Chromium shows reports and TensorBoard; Slurm runs as a cluster of one node, whose files are in build/slurm. Tests that
find none of it skip with a reason, or fail where TF_TEMPLATE_SERVICES=required is set, as .ci/run does.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from environment import BUILD, run

PACKAGES = {"sbatch": "slurm-wlm", "munged": "munge", "chromium": "chromium"}
SLURM = BUILD / "slurm"
PATIENCE_SECONDS = 60

# The process tracking and task plugins that need neither cgroups nor systemd.
SLURM_CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=15
JobRequeue=1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def install() -> None:
    """Install the packages whose programs are missing."""
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    if missing:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update", "-qq"], environment=environment)
        options = ["-qq", "--yes", "--no-install-recommends"]
        run(["apt-get", "install", *options, *missing], environment=environment)


def start_munge() -> None:
    """Start the daemon by which Slurm's programs trust each other."""
    if answers(["munge", "-n"]):
        return
    folder = Path("/run/munge")
    folder.mkdir(exist_ok=True)
    shutil.chown(folder, "munge", "munge")
    run(["runuser", "-u", "munge", "--", shutil.which("munged") or "munged"])
    wait_for(["munge", "-n"])


def start_slurm() -> None:
    """Start a cluster of this machine alone."""
    os.environ["SLURM_CONF"] = str(SLURM / "slurm.conf")
    if answers(["sinfo"]):
        return
    for name in ("state", "spool"):
        (SLURM / name).mkdir(parents=True, exist_ok=True)
    text = SLURM_CONF.format(
        host=socket.gethostname().partition(".")[0], folder=SLURM, cpus=os.cpu_count()
    )
    (SLURM / "slurm.conf").write_text(text, encoding="utf-8")
    run(["slurmctld"])
    run(["slurmd"])
    wait_for(["srun", "--quiet", "true"])


def answers(command: list[str]) -> bool:
    """Return whether a command ends well within ten seconds."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def wait_for(command: list[str]) -> None:
    """Wait until a command ends well, or end this script."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not answers(command):
        if time.monotonic() > deadline:
            sys.exit(
                f"error: {' '.join(command)} did not succeed within {PATIENCE_SECONDS} s; see {SLURM}"
            )
        time.sleep(0.5)


def main() -> None:
    """Install and start everything."""
    if sys.platform != "linux" or os.getuid() != 0 or not shutil.which("apt-get"):
        sys.exit("error: services can be installed and started on Debian as root only")
    install()
    start_munge()
    start_slurm()


if __name__ == "__main__":
    main()
