"""The controller of one topology: a named, detached actor that starts its workers, watches them and ends them.

It is the only owner of the workers. Programs that use the topology, the one that launched it included, are its clients:
they follow its state, ask for endpoints and metrics, and may stop it. The launching program also renews a lease, unless
the topology is detached; when the lease lapses the topology ends, so that nothing outlives a program that was killed.

All methods run in one event loop, so the state needs no lock. The loop never waits for a worker: answers are awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from topology.graph.errors import TopologyError
from topology.handle.endpoint import LOOPBACK, Endpoint
from topology.handle.status import State, Status, WorkerStatus
from topology.on_ray.by_value import dumps
from topology.on_ray.charter import NAMESPACE, Charter, Description, Report
from topology.on_ray.lease import RENEWAL_SECONDS, Lease, WakingClock
from topology.on_ray.nodes import job_is_dead
from topology.on_ray.recovery import Cause, Recovery
from topology.on_ray.reservation import Reservation, release_named
from topology.on_ray.worker_actor import Address, Failure, WorkerOrder, worker_class
from topology.placement.cluster_node import ClusterNode
from topology.placement.placement import WorkerPlan
from topology.security.tokens import Authority, Grant, Right

if TYPE_CHECKING:
    from topology.graph.graph import TaskName
    from topology.security.certificates import IssuesCertificates
    from topology.tasks.metrics import TaskMetrics

T = TypeVar("T")

START_SECONDS = 120.0
"""How long no worker may answer while they start; each answer begins a new wait."""

STOP_SECONDS = 5.0
SUSPICION_SECONDS = 2.0
NAME_SECONDS = 0.1

_ALIVE = (State.STARTING, State.RUNNING, State.RECOVERING)


class LaunchError(Exception):
    """The topology could not be started; carries the task that failed, where there is one."""

    def __init__(self, text: str, task: TaskName | None = None) -> None:
        super().__init__(text)
        self.task = task


class _Worker:
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

    @property
    def place(self) -> str:
        """The worker in an error message: its tasks and its node."""
        (component, number), *others = self.plan.tasks
        also = f" (with {', '.join(f'{name}[{task}]' for name, task in others)})" if others else ""
        return f"component '{component}', task {number}{also}, on node {self.host}"

    def status(self, topology: str) -> WorkerStatus:
        """The worker as clients see it."""
        pid = 0 if self.address is None else self.address.pid
        return WorkerStatus(f"{topology}/{self.plan.name}", self.host, pid, self.plan.tasks, self.lease.silent)


class ControllerProcess:
    """Starts, watches and ends the workers of one topology."""

    def __init__(self, charter: Charter, myself: Any, again: bool = False) -> None:
        self._charter = charter
        self._myself = myself
        self._authority = Authority()
        self._channel_token = self._authority.issue(Grant(Right.CHANNEL))
        self._tokens = {
            (name, control): self._authority.issue(*rights)
            for name, control, rights in _rights(charter.inputs, charter.sinks)
        }
        self._credentials: IssuesCertificates | None = None
        self._reservation: Reservation | None = None
        self._workers: dict[str, _Worker] = {}
        self._incarnation = 0
        self._recovery = Recovery()
        self._recovering: asyncio.Task[None] | None = None
        self._clock = WakingClock()
        self._lease = self._new_lease(charter.leases.owner) if charter.owner is not None else None
        self._report = Report(0, State.STARTING, "looking for room")
        self._changed = asyncio.Event()
        self._suspect: tuple[Failure, Lease] | None = None
        self._final_metrics: tuple[TaskMetrics, ...] = ()
        self._background: set[asyncio.Task[None]] = set()
        self._orphaned = again
        if again:  # lives are numbered on; how many there were, nobody knows any more
            self._incarnation = int(time.time())
            self._report = Report(0, State.RECOVERING, error="the process of the controller died")

    # what clients call

    async def begin(self) -> None:
        """Start the topology; `follow` tells how it goes."""
        self._spawn(self._launch())
        self._spawn(self._watch())

    async def follow(self, owner: str | None, version: int, seconds: float) -> Report:
        """Renew the owner's lease; return the state when it is newer than `version`, or after some seconds."""
        self._wake()
        if self._lease is not None and owner == self._charter.owner:
            self._lease.renew()
        if self._report.version <= version:
            try:
                await asyncio.wait_for(self._changed.wait(), seconds)
            except TimeoutError:
                pass
        return self._report

    async def describe(self) -> Description:
        """Return what a client needs to hold a handle."""
        where = {task: worker for worker in self._workers.values() for task in worker.plan.tasks}
        endpoints = {}
        for (name, control), token in self._tokens.items():
            address = where[name, 0].address if (name, 0) in where else None
            if address is not None:
                endpoints[name, control] = Endpoint(address.clients, token, self._root)
        charter = self._charter
        return Description(
            charter.name, charter.topology, charter.make_handle, endpoints, charter.edge_bytes,
            charter.leases, charter.owner is None, self._report.incarnation, charter.state is not None,
        )  # fmt: skip

    async def status(self) -> Status:
        """Return the state of the topology and of its workers."""
        charter, report = self._charter, self._report
        workers = tuple(worker.status(charter.name) for worker in self._workers.values())
        return Status(
            charter.name, report.state, workers, report.error, charter.owner is None, charter.encrypted,
            self._recovery.count,
        )  # fmt: skip

    async def is_led(self) -> bool:
        """Whether it runs and its owner, if it has one, holds its lease: then nobody else may take its name."""
        runs = self._report.state in _ALIVE
        return runs and not (self._lease is not None and self._lease.lapsed)

    async def metrics(self) -> tuple[TaskMetrics, ...]:
        """Return what each task has counted; after the end, what it had counted until then."""
        if self._report.state is not State.RUNNING:
            return self._final_metrics
        if self._charter.state is not None:
            return await self._last_metrics()  # a worker may die meanwhile, which is no error of the caller
        return await self._ask_metrics(START_SECONDS)

    async def stop(self) -> tuple[TaskMetrics, ...]:
        """End all workers and give their resources back; returns the last metrics. The controller ends soon after."""
        if self._report.state is not State.STOPPED:
            if self._report.state is State.RUNNING:
                self._final_metrics = await self._last_metrics()
            self._tell(State.STOPPED)
            if self._recovering is not None:
                self._recovering.cancel()
            await self._end_workers()
            self._spawn(self._leave())
        return self._final_metrics

    # what workers call

    async def beat(self, worker: str) -> bool:
        """Renew the lease of a worker; return whether it belongs to the topology."""
        self._wake()
        known = next((each for each in self._workers.values() if each.key == worker), None)
        if known is not None:
            known.lease.renew()
        return known is not None

    # starting

    def _wake(self) -> None:
        """In a process that Ray has started in place of one that died: start the topology again, once."""
        if self._orphaned:
            self._orphaned = False
            self._spawn(self._watch())
            self._recovering = self._spawn(self._recover(Cause(self._report.error, None)))

    async def _end_orphans(self) -> None:
        """End the workers of a controller that died, and free what it had reserved."""
        for plan in self._charter.placement.workers:
            with suppress(ValueError):
                ray.kill(ray.get_actor(f"{self._charter.name}/{plan.name}", NAMESPACE))
        await _in_thread(partial(release_named, self._charter.name))

    async def _launch(self) -> None:
        try:
            await self._start_workers()
        except LaunchError as error:
            await self._fail(str(error), error.task)
        except TopologyError as error:
            await self._fail(str(error), None)
        except Exception as error:
            await self._fail(f"{type(error).__name__}: {error}", None)

    async def _start_workers(self) -> None:
        charter = self._charter
        plans = charter.placement.workers
        self._reservation = Reservation(charter.name, charter.placement)
        try:
            nodes = await self._reserved(self._reservation)
        except LaunchError:
            self._reservation = None
            raise
        if charter.encrypted:
            from topology.security.own_certificates import credentials

            self._credentials = credentials(charter.tls)
        machines = len({node.id for node in nodes})
        self._tell(self._report.state, f"starting {_count(len(plans), 'worker')} on {_count(machines, 'node')}")
        for index, (plan, node) in enumerate(zip(plans, nodes, strict=True)):
            self._workers[plan.name] = await self._make_named(index, plan, node)
        await self._connect_workers()

    async def _reserved(self, reservation: Reservation) -> list[ClusterNode]:
        """The node of each worker, when there is room for all."""
        nodes = await reservation.wait(lambda note: self._tell(self._report.state, note))
        if isinstance(nodes, str):
            raise LaunchError(nodes)
        return nodes

    async def _connect_workers(self) -> None:
        """Hand out the addresses of all workers, start them and watch them."""
        for name, answer in (await self._ask("address")).items():
            if isinstance(answer, Failure):
                raise LaunchError(answer.text, answer.task)
            self._workers[name].address = answer
            self._recovery.note(answer.progress)
        addresses = {task: worker.address for worker in self._workers.values() for task in worker.plan.tasks}
        await self._ask("start", addresses)
        for worker in self._workers.values():
            self._spawn(self._await_end(worker, self._incarnation))
        self._tell(State.RUNNING)

    def _order(self, index: int, plan: WorkerPlan, host: str) -> WorkerOrder:
        charter = self._charter
        certificate = None if self._credentials is None else self._credentials.issue(host)
        return WorkerOrder(
            charter.work[index], plan.tasks, self._incarnation, charter.leases.worker, host, certificate, self._root,
            self._authority, self._channel_token, charter.state,
        )  # fmt: skip

    def _host(self, address: str) -> str:
        """Where a worker on the node of this address listens."""
        return address if self._charter.encrypted else LOOPBACK

    def _make_worker(self, index: int, plan: WorkerPlan, node: ClusterNode) -> _Worker:
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
        key = f"{plan.name}#{self._incarnation}"
        actor = ray.remote(worker_class(name)).options(**options)
        made = actor.remote(charter.prepare, dumps(order), self._myself, key)
        return _Worker(plan, node.id, node.address, made, self._new_lease(charter.leases.worker), key)

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
                    raise LaunchError(_reason(worker, error), worker.plan.tasks[0]) from None
            self._tell(self._report.state, f"{len(answers)} of {_count(total, 'worker')} started")
        return answers

    # watching

    async def _await_end(self, worker: _Worker, incarnation: int) -> None:
        """Wait until a worker fails or dies."""
        try:
            failure = await worker.actor.wait.remote()
        except ray.exceptions.RayError as error:
            if incarnation == self._incarnation:
                await self._end_life(Cause(_reason(worker, error), worker.plan.tasks[0]))
            return
        if failure is None or incarnation != self._incarnation:
            return
        if not failure.lost:
            await self._end_life(Cause(failure.text, failure.task, in_task=True))
        elif self._suspect is None:
            # Whoever broke the connection has some time to be found; a topology that starts again does not wait long.
            seconds = self._charter.leases.blame if self._charter.state is None else SUSPICION_SECONDS
            self._suspect = (failure, self._new_lease(seconds))

    async def _watch(self) -> None:
        """Look for leases that have lapsed."""
        while self._report.state in _ALIVE:
            await self._tick()
            if self._lease is not None and await self._owner_is_gone(self._lease):
                await self.stop()
                return
            if self._report.state is not State.RUNNING:
                continue
            for worker in self._workers.values():
                if worker.lease.lapsed:
                    await self._end_life(Cause(await self._silence(worker), worker.plan.tasks[0]))
                    break
            else:
                if self._suspect is not None and self._suspect[1].lapsed:
                    await self._end_life(Cause(self._suspect[0].text, self._suspect[0].task))
        if self._lease is not None:
            await self._outlive_owner(self._lease)

    async def _outlive_owner(self, lease: Lease) -> None:
        """After a failure, stay until the owner has seen it or has gone."""
        while self._report.state is not State.STOPPED:
            await self._tick()
            if await self._owner_is_gone(lease):
                await self.stop()

    async def _tick(self) -> None:
        await asyncio.sleep(RENEWAL_SECONDS)
        self._clock.tick()

    async def _owner_is_gone(self, lease: Lease) -> bool:
        """Whether the launching program has died; one that only does not renew its lease has some time to do so."""
        if not lease.lapsed:
            return False
        return lease.silent > self._charter.leases.patience or await _in_thread(job_is_dead)

    async def _silence(self, worker: _Worker) -> str:
        """Why a worker may have stopped reporting."""
        nodes = await _in_thread(ray.nodes)
        alive = any(node["NodeID"] == worker.node_id and node["Alive"] for node in nodes)
        cause = (
            f"process {worker.address.pid if worker.address else 0} is frozen, or the node is cut off from the network"
            if alive
            else "Ray has lost the node: it has stopped or is cut off from the network"
        )
        return f"{worker.place}: no sign of life for {worker.lease.silent:.0f} seconds; {cause}"

    # recovering

    async def _end_life(self, cause: Cause) -> None:
        """A worker has failed: the topology ends, or starts again from its state."""
        if self._charter.state is None:
            await self._fail(cause.text, cause.task)
        elif self._report.state is State.RUNNING:
            self._tell(State.RECOVERING, error=cause.text, task=cause.task)
            self._recovering = self._spawn(self._recover(cause))

    async def _recover(self, cause: Cause) -> None:
        """Start all workers again, until they run or have failed too often."""
        while True:
            pause = self._recovery.pause_after(cause)
            if pause is None:
                await self._fail(cause.text, cause.task)
                return
            self._incarnation += 1
            self._suspect = None
            self._tell(State.RECOVERING, f"starting again, for the {_count(self._recovery.count, 'time')}")
            await asyncio.sleep(pause)
            try:
                if self._reservation is None:
                    await self._end_orphans()
                    await self._start_workers()
                else:
                    await self._restart_workers()
                return
            except LaunchError as error:
                cause = Cause(str(error), error.task)
            except Exception as error:
                cause = Cause(f"{type(error).__name__}: {error}", None)

    async def _restart_workers(self) -> None:
        """Give a new order to the workers that live, and replace the others."""
        assert self._reservation is not None
        orders = {
            plan.name: dumps(self._order(index, plan, self._host(self._workers[plan.name].host)))
            for index, plan in enumerate(self._charter.placement.workers)
            if plan.name in self._workers
        }
        answers = await asyncio.gather(*(self._restart(self._workers[name], order) for name, order in orders.items()))
        dead = {name for name, lives in zip(orders, answers, strict=True) if not lives}
        for name in dead:
            ray.kill(self._workers[name].actor)
        missing = dead | ({plan.name for plan in self._charter.placement.workers} - set(orders))
        if missing:
            nodes = await self._reserved(self._reservation)
            for index, (plan, node) in enumerate(zip(self._charter.placement.workers, nodes, strict=True)):
                if plan.name in missing:
                    self._workers[plan.name] = await self._make_named(index, plan, node)
        await self._connect_workers()

    async def _restart(self, worker: _Worker, order: bytes) -> bool:
        """Let a worker begin a new life; return whether it lives."""
        answer = asyncio.ensure_future(_answer(worker.actor.restart.remote(order)))
        while not answer.done():
            await asyncio.wait([answer], timeout=RENEWAL_SECONDS)
            if worker.lease.lapsed:
                answer.cancel()
                return False
        return not answer.cancelled() and answer.exception() is None

    async def _make_named(self, index: int, plan: WorkerPlan, node: ClusterNode) -> _Worker:
        """Make a worker, perhaps in place of one that has gone, whose name Ray may give away only a moment later."""
        limit = self._new_lease(START_SECONDS)
        while True:
            try:
                return self._make_worker(index, plan, node)
            except ValueError:
                if limit.lapsed:
                    raise
                await asyncio.sleep(NAME_SECONDS)

    # ending

    async def _fail(self, text: str, task: TaskName | None) -> None:
        """Keep the first error, tell everyone, and end the workers."""
        if self._report.state not in _ALIVE:
            return
        self._tell(State.FAILED, error=text, task=task)
        self._final_metrics = await self._last_metrics()
        await self._end_workers()

    async def _end_workers(self) -> None:
        """Ask the workers to close, then kill their processes, wait until they have ended and free the resources."""
        actors = [worker.actor for worker in self._workers.values()]
        await _settled((actor.close.remote() for actor in actors), STOP_SECONDS)
        for actor in actors:
            ray.kill(actor)
        await _settled((actor.wait.remote() for actor in actors), STOP_SECONDS)
        if self._reservation is not None:
            self._reservation.release()
            self._reservation = None

    async def _leave(self) -> None:
        """End this process, after the answer to whoever stopped the topology."""
        await asyncio.sleep(RENEWAL_SECONDS)
        ray.kill(self._myself)

    async def _ask_metrics(self, seconds: float) -> tuple[TaskMetrics, ...]:
        answers = await asyncio.wait_for(
            asyncio.gather(*(_answer(worker.actor.metrics.remote()) for worker in self._workers.values())), seconds
        )
        return tuple(task for tasks in answers for task in tasks)

    async def _last_metrics(self) -> tuple[TaskMetrics, ...]:
        try:
            return await self._ask_metrics(STOP_SECONDS)
        except (ray.exceptions.RayError, TimeoutError):  # a worker that is gone has no metrics
            return ()

    @property
    def _root(self) -> str | None:
        return None if self._credentials is None else self._credentials.root

    def _tell(self, state: State, note: str = "", error: str = "", task: TaskName | None = None) -> None:
        """Change the state and wake everyone who follows."""
        last = self._report
        if state is State.RUNNING:
            self._report = Report(last.version + 1, state, incarnation=self._incarnation)
        else:
            self._report = Report(
                last.version + 1, state, note, task or last.failed_task, error or last.error, last.incarnation
            )
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _new_lease(self, seconds: float) -> Lease:
        return Lease(seconds, self._clock)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


async def _in_thread(call: Callable[[], T]) -> T:
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


def _rights(inputs: Iterable[str], sinks: Iterable[str]) -> Iterable[tuple[str, bool, tuple[Grant, ...]]]:
    for name in inputs:
        yield name, False, (Grant(Right.WRITE, name),)
        yield name, True, (Grant(Right.WRITE, name), Grant(Right.CONTROL, name))
    for name in sinks:
        for control in (False, True):
            yield name, control, (Grant(Right.READ, name),)


def _reason(worker: _Worker, error: Exception) -> str:
    """Why Ray got no answer from a worker; the last line is the one that the user reads first."""
    died = isinstance(error, ray.exceptions.RayActorError) and "creation task" not in str(error)
    return f"{error}\nthe process of {worker.place}, died" if died else str(error)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def controller_class(name: str) -> type:
    """Return the class of the controller's actor; made in a function for the reason given at `worker_class`."""

    class Controller:
        def __init__(self, prepare: Callable[[], None], charter: bytes) -> None:
            prepare()
            import ray

            from topology.on_ray.by_value import loads
            from topology.on_ray.controller import ControllerProcess

            given, here = loads(charter), ray.get_runtime_context()
            again = given.state is not None and bool(here.was_current_actor_reconstructed)
            self._process = ControllerProcess(given, here.current_actor, again)

        async def begin(self) -> None:
            await self._process.begin()

        async def follow(self, owner: Any, version: int, seconds: float) -> Any:
            return await self._process.follow(owner, version, seconds)

        async def describe(self) -> Any:
            return await self._process.describe()

        async def status(self) -> Any:
            return await self._process.status()

        async def is_led(self) -> bool:
            return await self._process.is_led()

        async def metrics(self) -> Any:
            return await self._process.metrics()

        async def stop(self) -> Any:
            return await self._process.stop()

        async def beat(self, worker: str) -> bool:
            return await self._process.beat(worker)

    Controller.__name__ = Controller.__qualname__ = name
    return Controller
