"""The processes that train together: a rendezvous, a heartbeat, barriers and small values gathered from all.

TensorFlow's own collectives wait for a worker that never comes, and report one that died by the name of an
operation. So the workers first connect to the chief and keep these connections: when one closes, or misses its
heartbeat, every process ends with a line that names the worker. Values are gathered through the chief:
settings that have to agree, and whether a process was asked to stop.
"""

import contextlib
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from .. import command
from ..errors import UserError
from .cluster import Cluster

_RETRY_SECONDS = 0.2
_HELLO_SECONDS = 2.0  # how long a connection that sends nothing keeps the others waiting
_AGAIN = "start all workers again to go on"
_HEARTBEATS = 5  # in the time after which a silent worker counts as dead


class Peers:
    """This process and those that train with it; alone if there is no cluster."""

    def __init__(self, cluster: Cluster | None, timeout: float) -> None:
        """Waits until all workers have connected; one that is silent for ``timeout`` seconds counts as dead.

        Raises:
            UserError: one did not arrive in this time, an address cannot be used, or two processes are the same worker.
        """
        self._cluster = cluster or Cluster(("",), 0)
        self._timeout = timeout
        self._links: dict[int, _Link] = {}
        self._leaving = False
        if cluster is None:
            return
        deadline = time.monotonic() + timeout
        with _listen(cluster) as server:
            if self.is_chief:
                self._accept_all(server, deadline)
        if not self.is_chief:
            self._links[0] = self._connect(deadline)
        for index in self._links:
            threading.Thread(target=self._receive, args=(index,), daemon=True).start()
        threading.Thread(target=self._heartbeat, daemon=True).start()
        self.barrier()

    @property
    def is_chief(self) -> bool:
        """Whether this is the process that writes the files of the run."""
        return self._cluster.index == 0

    def gather(self, value: Any) -> list[Any]:
        """Returns the values of all workers, by index, once all have called this; JSON must be able to hold them."""
        if not self.is_chief:
            self._links[0].send({"value": value})
            return list(self._links[0].values.get())
        values = [value, *(self._links[i].values.get() for i in sorted(self._links))]
        for link in self._links.values():
            link.send({"value": values})
        return values

    def barrier(self) -> None:
        """Waits until all workers have called this."""
        self.gather(None)

    def agree(self, settings: Mapping[str, str]) -> None:
        """Checks that all workers have the same settings, which are worded for a message: "worker 1 has ...".

        Raises:
            UserError: they differ; every worker raises the same message.
        """
        first, *others = self.gather(dict(settings))
        for index, other in enumerate(others, start=1):
            for name in sorted(first.keys() | other.keys()):  # all workers name the same
                if first.get(name) != other.get(name):
                    raise UserError(
                        f"{self._cluster.name(index)} has {other.get(name)}, {self._cluster.name(0)} has "
                        f"{first.get(name)}: start all with the same"
                    )

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leaves together with the others, or sends them the error, with which they end too."""
        if error is None:
            self.barrier()  # the chief may still be saving
        elif self._links and not isinstance(error, UserError):
            # TensorFlow may report a lost worker, by an operation's name, before the connection does.
            time.sleep(min(self._timeout, 2.0))
        self._leaving = True
        self._send_all({"leave": True} if error is None else {"failed": str(error)})

    def _send_all(self, message: Mapping[str, Any]) -> None:
        """Sends a message to all that can still be reached."""
        for link in self._links.values():
            with contextlib.suppress(OSError):
                link.send(message)

    def _accept_all(self, server: socket.socket, deadline: float) -> None:
        missing = set(range(1, len(self._cluster.workers)))
        while missing:
            server.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                connection, _ = server.accept()
                link = _Link(connection, min(self._timeout, _HELLO_SECONDS))
                index = link.receive().get("worker")
                connection.settimeout(self._timeout)
            except TimeoutError:
                if time.monotonic() < deadline:
                    continue  # a connection that sent nothing
                raise self._absent(min(missing)) from None
            except (OSError, ValueError, AttributeError):
                continue  # not a worker
            if index not in missing:
                problem = f"two processes say that they are worker {index}"
                link.send({"failed": problem})
                self._send_all({"failed": problem})
                raise UserError(problem)
            missing.remove(index)
            self._links[index] = link

    def _connect(self, deadline: float) -> "_Link":
        host, _, port = self._cluster.workers[0].rpartition(":")
        while True:
            try:
                connection = socket.create_connection(
                    (host.strip("[]"), int(port)), max(0.001, deadline - time.monotonic())
                )
                link = _Link(connection, self._timeout)
                link.send({"worker": self._cluster.index})
                return link
            except OSError:
                if time.monotonic() + _RETRY_SECONDS > deadline:
                    raise self._absent(0) from None
                time.sleep(_RETRY_SECONDS)

    def _absent(self, index: int) -> UserError:
        problem = (
            f"{self._cluster.name(index)} did not arrive within {self._timeout:g} s "
            "(--cluster_timeout); see that it was started and that its address can be reached"
        )
        self._send_all({"failed": problem})
        return UserError(problem)

    def _receive(self, index: int) -> None:
        """Takes what a worker sends until it leaves; ends this process if it is lost or failed."""
        link = self._links[index]
        while True:
            try:
                message = link.receive()
            except TimeoutError:
                return self._end(f"was silent for {self._timeout:g} s; {_AGAIN}", index)
            except (OSError, ValueError):
                return self._end(f"ended; {_AGAIN}", index)
            if "value" in message:
                link.values.put(message["value"])
            elif "failed" in message:
                return self._end(f"failed: {message['failed']}", index)
            elif "leave" in message:
                return None

    def _end(self, what: str, index: int) -> None:
        if self._leaving:
            return
        self._leaving = True
        problem = f"{self._cluster.name(index)} {what}"
        self._send_all({"failed": problem})
        # The main thread may be waiting in a collective for ever. What it was saving is beside the last good
        # checkpoint, as after a kill.
        os._exit(command.fail(problem))

    def _heartbeat(self) -> None:
        while not self._leaving:
            self._send_all({})
            time.sleep(self._timeout / _HEARTBEATS)


class _Link:
    """A connection that carries one JSON object a line."""

    def __init__(self, connection: socket.socket, timeout: float) -> None:
        connection.settimeout(timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._lines = connection.makefile("r", encoding="utf-8")
        self._sending = threading.Lock()
        self.values: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, message: Mapping[str, Any]) -> None:
        with self._sending:
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line.endswith("\n"):
            raise OSError("closed")
        return dict(json.loads(line))


def _listen(cluster: Cluster) -> socket.socket:
    """Takes the port of this worker, where TensorFlow will listen after the rendezvous."""
    port = int(cluster.workers[cluster.index].rpartition(":")[2])
    try:
        return socket.create_server(("", port), backlog=len(cluster.workers))
    except OSError as error:
        raise UserError(
            f"{cluster.name(cluster.index)}: port {port} cannot be used on this machine "
            f"({error.strerror}); end what uses it or give the worker another"
        ) from None
