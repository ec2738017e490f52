import json
import platform
import sys

import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.run.manifest import Manifest
from {{ cookiecutter.__package_name }}.engine.run.state import DataPosition

DATA = DataPosition(fingerprint="f00", examples=100, batch_size=10, seed=3)


def manifest(folder):
    strategy = tf.distribute.get_strategy()
    return Manifest(str(folder), strategy=strategy, deterministic=True, data=DATA)


def read(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_a_manifest_says_what_a_run_was_made_with(tmp_path):
    manifest(tmp_path).record("start", 0)
    values = read(tmp_path)
    assert values["command"] == sys.orig_argv
    assert values["versions"]["tensorflow"] == tf.__version__
    assert values["versions"]["python"] == platform.python_version()
    assert values["replicas"] == 1
    assert values["deterministic"] is True
    assert values["data"]["fingerprint"] == "f00"
    assert values["data"]["batch_size"] == 10


def test_what_happens_to_a_run_is_added_to_its_history(tmp_path):
    first = manifest(tmp_path)
    first.begin("start", 0)
    first.record("stop", 30)
    second = manifest(tmp_path)
    second.begin("resume", 30, changed_flags={"train_steps": ["--train_steps=50", ""]})
    second.finish(60, {"error": 0.25})
    third = manifest(tmp_path)
    third.finish(60, {"error": 0.25})  # the run was finished already
    history = read(tmp_path)["history"]
    assert [(entry["event"], entry["step"]) for entry in history] == [
        ("start", 0),
        ("stop", 30),
        ("resume", 30),
        ("finish", 60),
    ]
    assert history[2]["changed_flags"] == {"train_steps": ["--train_steps=50", ""]}
    assert history[2]["command"] == sys.orig_argv
    assert history[3]["result"] == {"error": 0.25}
    assert [entry["time"] for entry in history] == sorted(entry["time"] for entry in history)


def test_a_damaged_manifest_does_not_end_a_run_but_the_loss_is_noted(tmp_path):
    (tmp_path / "manifest.json").write_text('{"history": [')
    manifest(tmp_path).record("resume", 30)
    lost, resumed = read(tmp_path)["history"]
    assert "lost" in lost["event"]
    assert resumed["event"] == "resume"
