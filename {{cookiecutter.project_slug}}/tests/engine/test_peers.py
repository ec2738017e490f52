import json
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from {{ cookiecutter.__package_name }}.engine import errors
from {{ cookiecutter.__package_name }}.engine.distribute import peers
from {{ cookiecutter.__package_name }}.engine.distribute.cluster import Cluster
from {{ cookiecutter.__package_name }}.engine.errors import UserError


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def workers():
    return tuple(f"127.0.0.1:{port}" for port in free_ports(3))


def together(workers, work, timeout=20.0):
    """Runs `work(peers, index)` for each worker in a thread; returns what they returned or raised."""
    results: list[Any] = [None] * len(workers)

    def one(index):
        try:
            with peers.Peers(Cluster(workers, index), timeout) as group:
                results[index] = work(group, index)
        except UserError as error:
            results[index] = error

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_a_process_alone_waits_for_nobody():
    with peers.Peers(None, 0) as group:
        group.barrier()
        assert group.is_chief
        assert group.gather("mine") == ["mine"]
        group.agree({"setting": "one"})


def test_values_of_all_go_to_all_in_the_order_of_the_workers(workers):
    def work(group, index):
        return [group.gather({"worker": index, "round": i}) for i in range(20)]

    for result in together(workers, work):
        assert result == [[{"worker": w, "round": i} for w in range(3)] for i in range(20)]


def test_no_worker_passes_a_barrier_before_all_have_come(workers):
    arrived = []

    def work(group, index):
        time.sleep(0.1 * index)
        arrived.append(index)
        group.barrier()
        return len(arrived)

    assert together(workers, work) == [3, 3, 3]


def test_only_the_first_is_the_chief(workers):
    assert together(workers, lambda group, index: group.is_chief) == [True, False, False]


# What one worker says and does when it is a process; no TensorFlow, so that it starts at once.
WORKER = """
import json, sys, time
from PACKAGE import errors
from PACKAGE.distribute import cluster, peers

index, workers, timeout, todo = json.loads(sys.argv[1])
try:
    with peers.Peers(cluster.Cluster(tuple(workers), index), timeout) as group:
        print("met", flush=True)
        exec(todo)
except errors.UserError as error:
    sys.exit("error: " + str(error))
""".replace("PACKAGE", errors.__package__)


@pytest.fixture
def start(workers):
    """Starts a worker as a process: `start(index, todo)`; all are killed when the test ends."""
    started = []

    def start(index, todo="time.sleep(60)", timeout=20.0, addresses=workers):
        arguments = json.dumps([index, addresses, timeout, todo])
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, arguments],
            env={"PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def met(processes):
    assert [process.stdout.readline() for process in processes] == ["met\n"] * len(processes)


def error_of(process, seconds=30):
    _, err = process.communicate(timeout=seconds)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1
    return err


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_worker_that_is_killed_ends_the_others_at_once_and_is_named(start, workers, victim):
    processes = [start(i) for i in range(3)]
    met(processes)
    processes[victim].send_signal(signal.SIGKILL)
    for i in {0, 1, 2} - {victim}:
        assert f"worker {victim} ({workers[victim]}) ended" in error_of(processes[i], 10)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
def test_a_worker_that_is_silent_for_too_long_ends_the_others(start, workers):
    processes = [start(i, timeout=2.0) for i in range(3)]
    met(processes)
    processes[2].send_signal(signal.SIGSTOP)
    for i in (0, 1):
        assert f"worker 2 ({workers[2]}) was silent for 2 s" in error_of(processes[i], 15)


def test_an_error_of_one_worker_is_reported_by_all(start, workers):
    processes = [start(0), start(1, "raise errors.UserError('the disk is full')"), start(2)]
    assert error_of(processes[1]) == "error: the disk is full\n"
    for i in (0, 2):
        assert f"worker 1 ({workers[1]}) failed: the disk is full" in error_of(processes[i])


@pytest.mark.parametrize("absent", [0, 2])
def test_a_worker_that_never_arrives_is_named_within_the_time_given(start, workers, absent):
    began = time.monotonic()
    processes = [start(i, timeout=3.0) for i in {0, 1, 2} - {absent}]
    for process in processes:
        said = error_of(process)
        assert f"worker {absent} ({workers[absent]}) did not arrive within 3 s" in said
        assert "--cluster_timeout" in said
    assert time.monotonic() - began < 15


def test_settings_that_differ_are_reported_by_all(start, workers):
    todo = "group.agree({'rate': f'--learning_rate={0.1 if group.is_chief else 0.2}'})"
    for process in [start(i, todo) for i in range(3)]:
        said = error_of(process)
        assert f"worker 1 ({workers[1]}) has --learning_rate=0.2" in said
        assert f"worker 0 ({workers[0]}) has --learning_rate=0.1" in said


def test_two_processes_that_say_they_are_the_same_worker_are_refused(start):
    processes = [start(0), start(1), start(1)]
    said = [process.communicate(timeout=30)[1] for process in processes]
    assert "two processes say that they are worker 1" in said[0] or "port" in said[1] + said[2]
    assert all(process.returncode == 1 for process in processes)


def test_a_port_that_is_in_use_is_named(workers):
    port = int(workers[1].rpartition(":")[2])
    with (
        socket.create_server(("", port)),
        pytest.raises(UserError, match=rf"worker 1 .*port {port} cannot be used"),
    ):
        peers.Peers(Cluster(workers, 1), 5.0)


@pytest.mark.parametrize("says", [b"GET / HTTP/1.1\r\n\r\n", b""], ids=["other", "nothing"])
def test_a_connection_that_is_no_worker_is_ignored(start, workers, says):
    processes = [start(i, "print(group.gather(1))") for i in (0, 1)]
    host, _, port = workers[0].rpartition(":")
    deadline = time.monotonic() + 20
    while True:
        try:
            stranger = socket.create_connection((host, int(port)), 1)
            break
        except OSError:
            assert time.monotonic() < deadline
    with stranger:
        stranger.sendall(says)
        processes.append(start(2, "print(group.gather(1))"))
        for process in processes:
            out, err = process.communicate(timeout=30)
            assert (process.returncode, err, out) == (0, "", "met\n[1, 1, 1]\n")
