"""A worker as its controller sees it: the order that it gets, what it answers, and the class of its actor.

The controller imports this without the code that runs tasks, and so without Arrow: nothing starts before the controller
has started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from topology.security.tls import Certificate
from topology.security.tokens import Authority

if TYPE_CHECKING:
    from topology.graph.graph import TaskName


@dataclass(frozen=True)
class WorkerOrder:
    """What a worker is to do.

    work:          its share of the topology and its settings, packed by value: the node may lack the modules of the
                   user's program, and the controller does without those of the tasks.
    host:          the address to listen on.
    certificate:   what proves that address to clients; None on loopback.
    channel_token: the token that workers show each other.
    state:         what survives the worker; None: nothing does.
    client_port:   where its predecessor listened for clients, on the same machine; 0: there was none.
    active:        whether the topology takes rows.
    """

    work: bytes = field(repr=False)
    tasks: tuple[TaskName, ...]
    incarnation: int
    lease_seconds: float
    host: str
    certificate: Certificate | None = field(repr=False)
    root: str | None = field(repr=False)
    authority: Authority = field(repr=False)
    channel_token: str = field(repr=False)
    state: KeptState | None = None
    client_port: int = 0
    active: bool = True


@dataclass(frozen=True)
class KeptState:
    """Where the state of a topology is kept (see `StatePlace`), and the task whose worker keeps it."""

    uri: str = field(repr=False)  # it may hold keys
    name: str
    task: TaskName
    savepoint: str | None = field(default=None, repr=False)
    new_query: bool = False


@dataclass(frozen=True)
class Address:
    """Where a worker listens for other workers and for clients, and the machine that it runs on.

    progress: of the worker that keeps the state, how much had happened when it was opened; see `Image.progress`.
    """

    location: str
    clients: str
    node_id: str
    pid: int
    progress: tuple[int, int] | None = None


@dataclass(frozen=True)
class Failure:
    """Why a task ended early, or a worker did.

    lost:   only because another process went away.
    fenced: because somebody else has taken over the state, and keeps it.
    after:  where the text does not name the rows: the end of the last step that the task was through with.
    """

    task: TaskName | None
    text: str
    lost: bool = False
    fenced: bool = False
    after: int | None = None


def worker_class(name: str) -> type:
    """Return the class of the actor; Ray shows its name in lists of processes and actors.

    The class is made inside a function so that Ray sends it by value: a process of a cluster that was started elsewhere
    cannot import this package before it knows where to find it.
    """

    class Worker:
        def __init__(self, prepare: Callable[[], None], order: bytes, controller: Any, worker: str) -> None:
            import threading

            prepare()
            from topology.on_ray.by_value import loads
            from topology.on_ray.lease import Lease
            from topology.on_ray.worker import WorkerProcess, collect_lines, serve_while_led

            given = loads(order)
            self._process = WorkerProcess(given)
            self._lines = collect_lines(self._task_of)
            reporting = (controller, worker, Lease(given.lease_seconds), self._end, self._lines, self._vitals)
            threading.Thread(target=serve_while_led, args=reporting, name="reporting", daemon=True).start()

        def restart(self, order: bytes) -> Any:
            from topology.on_ray.by_value import loads
            from topology.on_ray.worker import WorkerProcess

            self._process.end()
            self._process = WorkerProcess(loads(order))
            return self._process.address()

        def address(self) -> Any:
            return self._process.address()

        def start(self, addresses: Any) -> None:
            self._process.start(addresses)

        def wait(self) -> Any:
            return self._process.wait()

        def metrics(self) -> Any:
            return self._process.metrics()

        def lines(self) -> Any:
            return self._lines.fetch()

        def rows_after(self, seq: int) -> str:
            return self._process.rows_after(seq)

        def savepoint(self) -> str:
            return self._process.savepoint()

        def set_active(self, active: bool) -> None:
            self._process.set_active(active)

        def close(self) -> None:
            self._process.close()

        def _task_of(self, thread: int) -> Any:
            return self._process.task_of(thread)  # the process object changes with every life

        def _vitals(self) -> Any:
            return self._process.vitals()

        def _end(self) -> None:
            import os

            self._process.close()
            os._exit(0)

    Worker.__name__ = Worker.__qualname__ = name
    return Worker
