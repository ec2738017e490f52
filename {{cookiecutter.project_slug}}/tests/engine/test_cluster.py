import json
import re

import pytest

from {{ cookiecutter.__package_name }}.engine.distribute import cluster
from {{ cookiecutter.__package_name }}.engine.errors import UserError

TWO = {"worker": ["first:2222", "second:2222"]}


def tf_config(jobs=TWO, kind="worker", index=0):
    return {"TF_CONFIG": json.dumps({"cluster": jobs, "task": {"type": kind, "index": index}})}


SLURM = {
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_STEP_NODELIST": "node[07-08]",
    "SLURM_PROCID": "2",
    "SLURM_JOB_ID": "3",
}


@pytest.mark.parametrize("kind", ["auto", "tf_config"])
def test_tf_config_names_the_workers_and_which_this_one_is(kind):
    found = cluster.find(kind, tf_config(index=1))
    assert found == cluster.Cluster(("first:2222", "second:2222"), 1)
    assert found.name(0) == "worker 0 (first:2222)"


def test_a_chief_is_the_first_worker():
    jobs = {"chief": ["boss:1"], "worker": ["first:1", "second:1"]}
    workers = ("boss:1", "first:1", "second:1")
    assert cluster.find("auto", tf_config(jobs, "chief")) == cluster.Cluster(workers, 0)
    assert cluster.find("auto", tf_config(jobs, "worker", 1)) == cluster.Cluster(workers, 2)


@pytest.mark.parametrize("kind", ["auto", "slurm"])
def test_tasks_of_slurm_are_the_workers_with_a_port_each(kind, monkeypatch):
    for name, value in SLURM.items():  # TensorFlow's resolver reads them itself
        monkeypatch.setenv(name, value)
    found = cluster.find(kind)
    assert found is not None
    assert found.index == 2
    hosts = [address.partition(":")[0] for address in found.workers]
    ports = [int(address.partition(":")[2]) for address in found.workers]
    assert hosts == ["node07", "node07", "node08", "node08"]
    assert ports == [ports[0], ports[0] + 1] * 2


@pytest.mark.parametrize(
    ("kind", "environment"),
    [
        ("auto", {}),
        ("none", tf_config()),
        ("auto", {"SLURM_STEP_NUM_TASKS": "1"}),
        ("auto", {"SLURM_STEP_NUM_TASKS": "", "TF_CONFIG": ""}),
    ],
)
def test_a_process_trains_alone_unless_it_is_told_of_others(kind, environment):
    assert cluster.find(kind, environment) is None


def test_a_cluster_of_one_is_none():
    assert cluster.find("auto", tf_config({"worker": ["only:2222"]})) is None


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"TF_CONFIG": ""}, "not understood"),
        ({"TF_CONFIG": "{"}, "not understood"),
        ({"TF_CONFIG": "[]"}, "not understood"),
        ({"TF_CONFIG": '{"cluster": {}}'}, "not understood"),
        (tf_config(index="first"), "not understood"),
        (tf_config(index=2), "worker 2 does not exist, it names 2 of them"),
        (tf_config(index=-1), "worker -1 does not exist"),
        (tf_config(kind="chief"), "chief 0 does not exist"),
        (tf_config(kind="evaluator"), "no job 'evaluator'"),
        (tf_config({**TWO, "ps": ["third:2222"]}), "no job 'ps'"),
        (tf_config({"worker": ["a:1", "b:1", "a:1"]}), "a:1 stands for more than one worker"),
        (tf_config({"worker": ["a:1", "b"]}), "'b' is no address"),
        (tf_config({"worker": ["a:1", "b:x"]}), "'b:x' is no address"),
        (tf_config({"worker": ["a:1", "b:99999"]}), "'b:99999' is no address"),
        (tf_config({"worker": ["a:1", 7]}), "7 is no address"),
    ],
)
def test_a_description_that_is_wrong_is_told_in_one_line(environment, said):
    with pytest.raises(UserError, match="TF_CONFIG") as caught:
        cluster.find("tf_config", environment)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["auto", "slurm"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "") for name in SLURM if name != "SLURM_STEP_NUM_TASKS"),
        ("SLURM_STEP_TASKS_PER_NODE", "two"),
        ("SLURM_STEP_NODELIST", "node[1"),
        ("SLURM_PROCID", "two"),
        ("SLURM_JOB_ID", "two"),
    ],
)
def test_variables_of_slurm_that_are_wrong_are_named_in_one_line(kind, name, value, monkeypatch):
    for variable, given in {**SLURM, name: value}.items():
        monkeypatch.setenv(variable, given)
    said = f"{name}({re.escape(f'={value!r}')}| is not set)"
    with pytest.raises(UserError, match=f"{said}.*--cluster=none") as caught:
        cluster.find(kind)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("environment", [{}, {"SLURM_STEP_NUM_TASKS": ""}])
def test_slurm_without_srun_names_what_to_start(environment):
    with pytest.raises(UserError, match=r"SLURM_STEP_NUM_TASKS is not set; .* srun"):
        cluster.find("slurm", environment)
