"""The workers of one topology, as its controller uses them: makes them, asks them, starts them again and ends them.

Each start is a life, with a number. A worker that lives through the end of a life keeps its process, with a new order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from topology.handle.endpoint import LOOPBACK, PLAIN, Endpoint, location_of
from topology.handle.status import Vitals, WorkerStatus
from topology.on_ray.by_value import dumps
from topology.on_ray.charter import NAMESPACE, Charter, latest_ports, remember_ports
from topology.on_ray.lease import RENEWAL_SECONDS, Lease, WakingClock
from topology.on_ray.reservation import Reservation, release_named
from topology.on_ray.worker_actor import Address, Failure, WorkerOrder, worker_class
from topology.placement.cluster_node import ClusterNode
from topology.placement.placement import WorkerPlan

if TYPE_CHECKING:
    from topology.graph.graph import TaskName
    from topology.handle.log_lines import LogLine
    from topology.security.certificates import IssuesCertificates
    from topology.tasks.metrics import TaskMetrics

T = TypeVar("T")

START_SECONDS = 120.0
"""How long no worker may answer while they start; each answer begins a new wait."""

STOP_SECONDS = 5.0
ROWS_SECONDS = 1.0
"""Less than a worker that is not to blame is suspected for."""

NAME_SECONDS = 0.1
"""How often to try a name that Ray has not given back yet."""


class LaunchError(Exception):
    """The topology could not be started; carries the task that failed, where there is one."""

    def __init__(self, text: str, task: TaskName | None = None) -> None:
        super().__init__(text)
        self.task = task


class Worker:
    """A worker as the controller sees it.

    key: what it calls itself when it reports; a successor has another one.
    """

    def __init__(self, plan: WorkerPlan, node_id: str, host: str, actor: Any, lease: Lease, key: str) -> None:
        self.plan = plan
        self.node_id = node_id
        self.host = host
        self.actor = actor
        self.address: Address | None = None
        self.lease = lease
        self.key = key
        self.vitals: Vitals | None = None

    @property
    def place(self) -> str:
        """The worker in an error message: its tasks and its node."""
        (component, number), *others = self.plan.tasks
        also = f" (with {', '.join(f'{name}[{task}]' for name, task in others)})" if others else ""
        return f"component '{component}', task {number}{also}, on node {self.host}"

    def status(self, topology: str) -> WorkerStatus:
        """The worker as clients see it."""
        pid = 0 if self.address is None else self.address.pid
        name = f"{topology}/{self.plan.name}"
        return WorkerStatus(name, self.host, pid, self.plan.tasks, self.lease.silent, self.vitals)

    def reason(self, error: Exception) -> str:
        """Why Ray got no answer from it; the last line is the one that the user reads first."""
        died = isinstance(error, ray.exceptions.RayActorError) and "creation task" not in str(error)
        return f"{error}\nthe process of {self.place}, died" if died else str(error)


class Workforce:
    """All workers of a topology, and what they need: reserved resources, tokens, certificates.

    controller: the actor that they report to.
    clock:      of their leases.
    tell:       called with what is being waited for.
    life:       the number of the life that runs, or begins.
    active:     whether the topology takes rows, in this life and the next ones; see `set_active`.
    """

    def __init__(self, charter: Charter, controller: Any, clock: WakingClock, tell: Callable[[str], None]) -> None:
        self.life = 0
        self.active = True
        self._charter = charter
        self._controller = controller
        self._clock = clock
        self._tell = tell
        self._ports: dict[str, int] = {}  # of workers that clients call, by what they hold and their machine
        self._credentials: IssuesCertificates | None = None
        self._reservation: Reservation | None = None
        self._workers: dict[str, Worker] = {}

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Those that have been made, entry first."""
        return tuple(self._workers.values())

    def endpoints(self) -> Mapping[tuple[str, bool], Endpoint]:
        """Where clients reach inputs and sinks, with and without control; those whose worker has started."""
        where = {task: worker.address for worker in self._workers.values() for task in worker.plan.tasks}
        found = {}
        for (name, control), token in self._charter.access.clients.items():
            address = where.get((name, 0))
            if address is not None:
                found[name, control] = Endpoint(address.clients, token, self._root)
        return found

    async def start(self) -> tuple[int, int] | None:
        """Make all workers and start them; return the progress of the journal, if there is one."""
        charter, active = self._charter, self.active
        plans = charter.layout.placement.workers
        self._reservation = Reservation(charter.name, charter.layout.placement)
        nodes = await self._reserved(self._reservation)
        if charter.encrypted and self._credentials is None:
            from topology.security.own_certificates import credentials

            self._credentials = credentials(charter.tls)
        machines = len({node.id for node in nodes})
        self._tell(f"starting {_count(len(plans), 'worker')} on {_count(machines, 'node')}")
        for index, (plan, node) in enumerate(zip(plans, nodes, strict=True)):
            self._workers[plan.name] = await self._make(index, plan, node)
        return await self._connect(active)

    async def start_again(self) -> tuple[int, int] | None:
        """Begin another life: give a new order to the workers that live, and replace the others."""
        self.life += 1
        if self._reservation is None:
            await self.end_strangers()
            self._ports = await in_thread(partial(latest_ports, self._charter))
            return await self.start()
        plans, active = self._charter.layout.placement.workers, self.active
        orders = {
            plan.name: dumps(self._order(index, plan, self._host(self._workers[plan.name].host)))
            for index, plan in enumerate(plans)
            if plan.name in self._workers
        }
        answers = await asyncio.gather(*(self._restart(self._workers[name], order) for name, order in orders.items()))
        alive = {name for name, lives in zip(orders, answers, strict=True) if lives}
        for name in orders.keys() - alive:
            ray.kill(self._workers[name].actor)
        if len(alive) < len(plans):
            nodes = await self._reserved(self._reservation)
            for index, (plan, node) in enumerate(zip(plans, nodes, strict=True)):
                if plan.name not in alive:
                    self._workers[plan.name] = await self._make(index, plan, node)
        return await self._connect(active)

    async def start_with(self, charter: Charter) -> tuple[int, int] | None:
        """Begin another life, laid out in another way: all workers end, and others start."""
        self.life += 1
        await self.end()
        self._workers.clear()
        self._charter = charter
        return await self.start()

    async def set_active(self, active: bool) -> None:
        """Let all workers take rows, or none; those that start meanwhile, too."""
        self.active = active
        calls = [worker.actor.set_active.remote(active) for worker in self.workers]
        await _settled(calls, STOP_SECONDS)  # a worker that has died is followed by one that is told when it is made

    async def savepoint(self) -> str:
        """Let the worker that keeps the state copy it; return where the copy is."""
        place: str = await _answer(self._keeper.actor.savepoint.remote())
        return place

    async def rows_after(self, seq: int) -> str:
        """The rows of the step behind `seq` in words, if the worker that keeps the state knows and answers soon."""
        try:
            rows: str = await asyncio.wait_for(_answer(self._keeper.actor.rows_after.remote(seq)), ROWS_SECONDS)
        except (ray.exceptions.RayError, TimeoutError):
            return ""
        return rows

    @property
    def _keeper(self) -> Worker:
        state = self._charter.state
        assert state is not None
        return next(worker for worker in self.workers if state.task in worker.plan.tasks)

    async def metrics(self, seconds: float) -> tuple[TaskMetrics, ...]:
        """What each task has counted."""
        answers = await asyncio.wait_for(
            asyncio.gather(*(_answer(worker.actor.metrics.remote()) for worker in self.workers)), seconds
        )
        return tuple(task for tasks in answers for task in tasks)

    async def last_metrics(self) -> tuple[TaskMetrics, ...]:
        """As `metrics`, but empty if a worker does not answer."""
        try:
            return await self.metrics(STOP_SECONDS)
        except (ray.exceptions.RayError, TimeoutError):  # a worker that is gone has no metrics
            return ()

    async def last_lines(self) -> dict[str, list[LogLine]]:
        """What workers have logged since their last report, of those that answer."""
        calls = {worker.plan.name: _answer(worker.actor.lines.remote()) for worker in self.workers}
        answers = await asyncio.gather(
            *(asyncio.wait_for(call, STOP_SECONDS) for call in calls.values()), return_exceptions=True
        )
        return {name: lines for name, lines in zip(calls, answers, strict=True) if isinstance(lines, list)}

    async def end(self) -> None:
        """Ask the workers to close, then kill their processes, wait until they have ended and free the resources."""
        actors = [worker.actor for worker in self.workers]
        await _settled((actor.close.remote() for actor in actors), STOP_SECONDS)
        for actor in actors:
            ray.kill(actor)
        await _settled((actor.wait.remote() for actor in actors), STOP_SECONDS)
        if self._reservation is not None:
            self._reservation.release()
            self._reservation = None

    async def end_strangers(self) -> None:
        """End the workers of a controller that died, and free what it had reserved."""
        for plan in self._charter.layout.placement.workers:
            with suppress(ValueError):
                ray.kill(ray.get_actor(f"{self._charter.name}/{plan.name}", NAMESPACE))
        await in_thread(partial(release_named, self._charter.name))

    async def _reserved(self, reservation: Reservation) -> list[ClusterNode]:
        """The node of each worker, when there is room for all."""
        nodes = await reservation.wait(self._tell)
        if isinstance(nodes, str):
            self._reservation = None  # it has been released
            raise LaunchError(nodes)
        return nodes

    async def _connect(self, active: bool) -> tuple[int, int] | None:
        """Hand out the addresses of all workers and start them; `active`: whether their orders let them take rows."""
        progress = None
        for name, answer in (await self._ask("address")).items():
            if isinstance(answer, Failure):
                raise LaunchError(answer.text, answer.task)
            self._workers[name].address = answer
            progress = progress or answer.progress
            if answer.clients:
                self._ports[self._port_of(self._workers[name].plan, answer.clients)] = _port(answer.clients)
        if self._charter.state is not None:
            await in_thread(partial(remember_ports, self._charter, dict(self._ports)))
        addresses = {task: worker.address for worker in self.workers for task in worker.plan.tasks}
        await self._ask("start", addresses)
        if self.active is not active:  # workers may have been made before that changed
            await self.set_active(self.active)
        return progress

    def _order(self, index: int, plan: WorkerPlan, host: str) -> WorkerOrder:
        charter = self._charter
        certificate = None if self._credentials is None else self._credentials.issue(host)
        return WorkerOrder(
            charter.layout.work[index], plan.tasks, self.life, charter.leases.worker, host, certificate, self._root,
            charter.access.authority, charter.access.channel, charter.state,
            self._ports.get(self._port_of(plan, location_of(PLAIN, host, 0)), 0), self.active,
        )  # fmt: skip

    def _port_of(self, plan: WorkerPlan, location: str) -> str:
        """What tells the port of a worker from others: its first input or sink, and its machine."""
        named = {*self._charter.inputs, *self._charter.sinks}
        held = next((component for component, _ in plan.tasks if component in named), "")
        return f"{held} on {urlsplit(location).hostname}"

    def _host(self, address: str) -> str:
        """Where a worker on the node of this address listens."""
        return address if self._charter.encrypted else LOOPBACK

    async def _make(self, index: int, plan: WorkerPlan, node: ClusterNode) -> Worker:
        """Make a worker, perhaps in place of one that has gone, whose name Ray may give back only a moment later."""
        limit = Lease(START_SECONDS)
        while True:
            try:
                return self._made(index, plan, node)
            except ValueError:
                if self._charter.state is None or limit.lapsed:
                    raise
                await asyncio.sleep(NAME_SECONDS)

    def _made(self, index: int, plan: WorkerPlan, node: ClusterNode) -> Worker:
        charter = self._charter
        order = self._order(index, plan, self._host(node.address))
        assert self._reservation is not None
        name = f"{charter.name}/{plan.name}"
        options: dict[str, Any] = {
            "name": name,
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_concurrency": 4,
            "num_cpus": plan.cpus,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(self._reservation.group, index),
        }
        if plan.memory is not None:
            options["memory"] = plan.memory
        if charter.runtime_env:
            options["runtime_env"] = dict(charter.runtime_env)
        key = f"{plan.name}#{self.life}"
        actor = ray.remote(worker_class(name)).options(**options)
        made = actor.remote(charter.prepare, dumps(order), self._controller, key)
        return Worker(plan, node.id, node.address, made, Lease(charter.leases.worker, self._clock), key)

    async def _ask(self, method: str, *arguments: Any) -> dict[str, Any]:
        """Call a method of every worker; wait as long as there is progress."""
        waiting = {
            asyncio.ensure_future(_answer(getattr(worker.actor, method).remote(*arguments))): name
            for name, worker in self._workers.items()
        }
        answers: dict[str, Any] = {}
        total = len(waiting)
        while waiting:
            done, _ = await asyncio.wait(waiting, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                missing = [self._workers[name].place for name in waiting.values()]
                raise LaunchError(
                    f"no worker answered for {START_SECONDS:.0f} seconds; {len(missing)} of {total} are missing: "
                    + "; ".join(missing),
                    self._workers[next(iter(waiting.values()))].plan.tasks[0],
                )
            for future in done:
                name = waiting.pop(future)
                try:
                    answers[name] = future.result()
                except ray.exceptions.RayError as error:
                    worker = self._workers[name]
                    raise LaunchError(worker.reason(error), worker.plan.tasks[0]) from None
            self._tell(f"{len(answers)} of {_count(total, 'worker')} started")
        return answers

    async def _restart(self, worker: Worker, order: bytes) -> bool:
        """Let a worker begin a new life; return whether it lives."""
        answer = asyncio.ensure_future(_answer(worker.actor.restart.remote(order)))
        while not answer.done():
            await asyncio.wait([answer], timeout=RENEWAL_SECONDS)
            if worker.lease.lapsed:
                answer.cancel()
                return False
        return not answer.cancelled() and answer.exception() is None

    @property
    def _root(self) -> str | None:
        return None if self._credentials is None else self._credentials.root


async def in_thread(call: Callable[[], T]) -> T:
    """Make a call that may wait for Ray, without making the loop wait."""
    return await asyncio.get_running_loop().run_in_executor(None, call)


async def _answer(reference: Any) -> Any:
    return await reference


async def _settled(references: Iterable[Any], seconds: float) -> None:
    """Wait until all calls have ended, well or badly, but not longer than some seconds."""
    waiting = [asyncio.ensure_future(_answer(reference)) for reference in references]
    if waiting:
        done, late = await asyncio.wait(waiting, timeout=seconds)
        for future in late:
            future.cancel()
        for future in done:
            future.exception()  # a dead process is what was wanted


def _port(location: str) -> int:
    return urlsplit(location).port or 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
