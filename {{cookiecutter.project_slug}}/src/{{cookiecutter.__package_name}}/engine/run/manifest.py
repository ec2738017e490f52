"""``manifest.json``: what a run was made with and what happened to it, for a person who finds it in a year."""

import dataclasses
import datetime
import functools
import importlib.metadata
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from ..system.files import to_json, write_text
from .state import DataPosition

FILE = "manifest.json"
_PACKAGES = ("tensorflow", "keras", "numpy", "absl-py")


class Manifest:
    """The manifest of one run; every change is written at once. Of several workers, the chief alone has one."""

    def __init__(
        self,
        model_dir: str,
        *,
        strategy: tf.distribute.Strategy,
        deterministic: bool,
        data: DataPosition,
    ) -> None:
        """Goes on with the history of the manifest in ``model_dir``, if there is one."""
        self._path = Path(model_dir) / FILE
        self._made_with = {
            "command": sys.orig_argv,
            "git": _git(),
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in _PACKAGES},
            },
        }
        self._values: dict[str, Any] = {
            **self._made_with,
            "platform": platform.platform(),
            "devices": [device.name for device in tf.config.list_logical_devices()],
            "replicas": strategy.num_replicas_in_sync,
            "deterministic": deterministic,
            "data": dataclasses.asdict(data),
            "history": _history(self._path),
        }

    def begin(self, event: str, step: int, **details: Any) -> None:
        """Records a start or resume, with the command, the commit and the versions."""
        self.record(event, step, **details, **self._made_with)

    def finish(self, step: int, result: Mapping[str, Any]) -> None:
        """Records the end of training, if it is not recorded yet."""
        history = self._values["history"]
        if not history or history[-1]["event"] != "finish":
            self.record("finish", step, result=dict(result))

    def record(self, event: str, step: int, **details: Any) -> None:
        """Adds to the history that ``event`` happened after ``step`` steps.

        Raises:
            UserError: the manifest could not be written.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._values["history"].append({"event": event, "step": step, "time": now, **details})
        write_text(self._path, to_json(self._values, indent=2, ensure_ascii=False) + "\n")


def _history(path: Path) -> list[dict[str, Any]]:
    try:
        return list(json.loads(path.read_text(encoding="utf-8"))["history"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        return [{"event": "the history before this was lost: manifest.json could not be read"}]


def _git() -> dict[str, Any] | None:
    """Returns the commit of the code and whether it had changes; None where it is not in a repository."""
    git = ["git", "-C", str(Path(__file__).parent)]
    ask = functools.partial(subprocess.check_output, stderr=subprocess.DEVNULL, timeout=10)
    try:
        commit = ask([*git, "rev-parse", "HEAD"], text=True).strip()
        return {"commit": commit, "dirty": bool(ask([*git, "status", "--porcelain"]))}
    except (OSError, subprocess.SubprocessError):
        return None
