"""The controller of one topology: a named, detached actor that starts its workers, watches them and ends them.

It is the only owner of the workers. Programs that use the topology, the one that launched it included, are its clients:
they follow its state, ask for endpoints and metrics, and may stop it. The launching program also renews a lease, unless
the topology is detached; when the lease lapses the topology ends, so that nothing outlives a program that was killed.

When a worker fails, the topology ends; or, if its state is kept, all workers start again from there.

All methods run in one event loop, so the state needs no lock. The loop never waits for a worker: answers are awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import ray

from topology.graph.errors import StoppedError, TopologyError
from topology.handle.log_lines import LogLine, LogLines
from topology.handle.status import Event, State, Status, Vitals
from topology.journal.step_rows import at_rows
from topology.on_ray.by_value import loads
from topology.on_ray.charter import (
    Charter,
    Description,
    Report,
    forget,
    is_forgotten,
    latest_activity,
    note_launch,
    remember,
    remember_activity,
)
from topology.on_ray.lease import RENEWAL_SECONDS, Lease, WakingClock
from topology.on_ray.nodes import job_is_dead
from topology.on_ray.recovery import Cause, Recovery
from topology.on_ray.worker_actor import Failure
from topology.on_ray.workforce import START_SECONDS, LaunchError, Worker, Workforce, in_thread

if TYPE_CHECKING:
    from topology.graph.graph import TaskName
    from topology.tasks.metrics import TaskMetrics

SUSPICION_SECONDS = 2.0
"""As `LeaseSeconds.blame`, where the topology starts again anyway: a worker that died has been noticed by then."""

REBALANCING = "it is being rebalanced"

KEPT_EVENTS = 200
"""Changes of the state that are remembered."""

_ALIVE = (State.STARTING, State.RUNNING, State.RECOVERING)


class ControllerProcess:
    """Watches the workers of one topology, and decides when they start and end.

    again: whether Ray has started this process in place of one that died.
    """

    def __init__(self, charter: Charter, myself: Any, again: bool = False) -> None:
        self._charter = charter
        self._myself = myself
        self._clock = WakingClock()
        self._workforce = Workforce(charter, myself, self._clock, self._note)
        self._recovery = Recovery()
        self._recovering: asyncio.Future[Any] | None = None
        self._lease = self._new_lease(charter.leases.owner) if charter.owner is not None else None
        self._report = Report(0, State.STARTING, "looking for room")
        self._changed = asyncio.Event()
        self._suspect: tuple[Failure, Lease] | None = None
        self._final_metrics: tuple[TaskMetrics, ...] = ()
        self._background: set[asyncio.Task[None]] = set()
        self._events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        # Lines are numbered on as lives are: no number comes twice, so that whoever follows them misses none.
        self._lines = LogLines(charter.name, int(time.time() * 1000) if again else 0)
        self._activating = asyncio.Lock()
        self._asleep = again
        if again and is_forgotten(charter):
            self._report = Report(0, State.STOPPED)
        elif again:  # lives are numbered on; how many there were, nobody knows any more
            self._workforce.life = int(time.time())
            self._workforce.active = latest_activity(charter)
            self._report = Report(0, State.RECOVERING, error="the process of the controller died")
            self._events.append(Event(time.time(), State.RECOVERING, self._report.error))

    # what clients call

    async def begin(self) -> None:
        """Start the topology; `follow` tells how it goes."""
        if self._charter.state is not None:
            await in_thread(partial(note_launch, self._charter))
        self._spawn(self._launch())
        self._spawn(self._watch())

    async def wake(self) -> None:
        """In a process that Ray has started in place of one that died: begin."""
        self._wake()

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
        charter = self._charter
        return Description(
            charter.name, charter.layout, self._workforce.endpoints(), charter.edge_bytes, charter.leases,
            charter.owner is None, self._report.incarnation, charter.state is not None,
        )  # fmt: skip

    async def status(self) -> Status:
        """Return the state of the topology and of its workers."""
        charter, report = self._charter, self._report
        workers = tuple(worker.status(charter.name) for worker in self._workforce.workers)
        troubles = [worker.vitals.trouble for worker in workers if worker.vitals is not None and worker.vitals.trouble]
        trouble = troubles[0] if troubles and report.state is State.RUNNING else ""
        return Status(
            charter.name, report.state, workers, report.error, charter.owner is None, charter.encrypted,
            self._recovery.count, tuple(self._events), trouble, self._workforce.active,
        )  # fmt: skip

    async def is_led(self) -> bool:
        """Whether it runs and its owner, if it has one, holds its lease: then nobody else may take its name."""
        return self._report.state in _ALIVE and not (self._lease is not None and self._lease.lapsed)

    async def metrics(self) -> tuple[TaskMetrics, ...]:
        """Return what each task has counted; after the end, what it had counted until then."""
        if self._report.state is not State.RUNNING:
            return self._final_metrics
        if self._charter.state is not None:
            return await self._workforce.last_metrics()  # a worker may die meanwhile, which is no error of the caller
        return await self._workforce.metrics(START_SECONDS)

    async def logs(self, after: int) -> tuple[LogLine, ...]:
        """Return what workers have logged and printed after the line of this number."""
        return self._lines.after(after)

    async def stop(self) -> tuple[TaskMetrics, ...]:
        """End all workers and give their resources back; returns the last metrics. The controller ends soon after."""
        if self._report.state is not State.STOPPED:
            if self._report.state is State.RUNNING:
                self._final_metrics = await self._workforce.last_metrics()
            self._tell(State.STOPPED)
            if self._charter.state is not None:  # first: a process that took the place of this one goes on with it
                await in_thread(partial(forget, self._charter))
            if self._recovering is not None:
                self._recovering.cancel()
            await self._workforce.end()
            self._spawn(self._leave())
        return self._final_metrics

    async def rebalance(self, layout: bytes) -> str:
        """Go on with another layout. Return why that was not possible, and then it goes on as before; else nothing."""
        if self._charter.state is None or self._report.state is not State.RUNNING:
            return f"it is {self._report.state.value}: try again when it runs"
        self._tell(State.RECOVERING, error=REBALANCING)
        moving = asyncio.ensure_future(self._rearrange(self._charter, self._charter.with_layout(loads(layout))))
        self._recovering = moving
        try:
            return await moving
        except asyncio.CancelledError:
            if self._has_stopped:
                raise StoppedError(f"the topology '{self._charter.name}' was stopped while it was rebalanced") from None
            raise

    async def set_active(self, active: bool) -> None:
        """Let the topology take rows from now on, or none, in this life and the next ones."""
        async with self._activating:
            if self._charter.state is not None:  # first: Ray may have to replace this process
                await in_thread(partial(remember_activity, self._charter, active))
            await self._workforce.set_active(active)
            self._tell(self._report.state)

    async def savepoint(self) -> str:
        """Copy the state; return where the copy is."""
        return await self._workforce.savepoint()

    # what workers call

    async def beat(self, worker: str, lines: Sequence[LogLine], vitals: Vitals) -> bool:
        """Renew the lease of a worker and keep what it tells; return whether it belongs to the topology."""
        self._wake()
        known = next((each for each in self._workforce.workers if each.key == worker), None)
        if known is not None:
            known.lease.renew()
            known.vitals = vitals
            self._lines.add(lines, known.plan.name)
        return known is not None

    # starting

    async def _launch(self) -> None:
        try:
            self._run(await self._workforce.start())
        except LaunchError as error:
            await self._fail(str(error), error.task)
        except TopologyError as error:
            await self._fail(str(error), None)
        except Exception as error:
            await self._fail(f"{type(error).__name__}: {error}", None)

    def _run(self, progress: tuple[int, int] | None) -> None:
        """Watch the workers, all of which have started; `progress`: of the journal, when it was opened."""
        self._recovery.note(progress)
        self._suspect = None  # of the life before
        for worker in self._workforce.workers:
            self._spawn(self._await_end(worker, self._workforce.life))
        self._tell(State.RUNNING)

    def _wake(self) -> None:
        """In a process that Ray has started in place of one that died: start the topology again, once."""
        if self._asleep:
            self._asleep = False
            if self._report.state is State.STOPPED:
                self._spawn(self._finish_stopping())
                return
            self._spawn(self._watch())
            self._recovering = self._spawn(self._recover(Cause(self._report.error, None)))

    # watching

    async def _await_end(self, worker: Worker, life: int) -> None:
        """Wait until a worker fails or dies."""
        try:
            failure = await worker.actor.wait.remote()
        except ray.exceptions.RayError as error:
            if life == self._workforce.life:
                await self._end_life(Cause(worker.reason(error), worker.plan.tasks[0]))
            return
        if failure is None or life != self._workforce.life:
            return
        if failure.fenced:  # another topology has the state; to take it back would only begin a quarrel
            await self._fail(failure.text, failure.task)
        elif not failure.lost:
            text = failure.text
            if failure.after is not None and self._charter.state is not None:
                text = at_rows(await self._workforce.rows_after(failure.after), text)
            if life == self._workforce.life:
                await self._end_life(Cause(text, failure.task, in_task=True))
        elif self._suspect is None:
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
            for worker in self._workforce.workers:
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
        return lease.silent > self._charter.leases.patience or await in_thread(job_is_dead)

    async def _silence(self, worker: Worker) -> str:
        """Why a worker may have stopped reporting."""
        nodes = await in_thread(ray.nodes)
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
        while (pause := self._recovery.pause_after(cause)) is not None:
            self._tell(State.RECOVERING, error=cause.text, task=cause.task)
            await asyncio.sleep(pause)
            try:
                self._run(await self._workforce.start_again())
                return
            except LaunchError as error:
                cause = Cause(str(error), error.task)
            except Exception as error:
                cause = Cause(f"{type(error).__name__}: {error}", None)
        await self._fail(cause.text, cause.task)

    async def _rearrange(self, before: Charter, after: Charter) -> str:
        """Start all workers anew, laid out in another way; if that fails, as they were."""
        failure = ""
        for charter in (after, before):
            self._charter = charter
            try:
                await in_thread(partial(remember, charter))  # first: Ray may have to replace this process
                self._run(await self._workforce.start_with(charter))
                return failure
            except LaunchError as error:
                failure = failure or str(error)
            except Exception as error:
                failure = failure or f"{type(error).__name__}: {error}"
        await self._recover(Cause(failure, None))
        return failure

    # ending

    async def _fail(self, text: str, task: TaskName | None) -> None:
        """Keep the first error, tell everyone, and end the workers."""
        if self._report.state not in _ALIVE:
            return
        self._tell(State.FAILED, error=text, task=task)
        for worker, lines in (await self._workforce.last_lines()).items():
            self._lines.add(lines, worker)
        self._final_metrics = await self._workforce.last_metrics()
        await self._workforce.end()

    async def _finish_stopping(self) -> None:
        """Go on with `stop` where a process that died was."""
        await self._workforce.end_strangers()
        await self._leave()

    async def _leave(self) -> None:
        """End this process, after the answer to whoever stopped the topology."""
        await asyncio.sleep(RENEWAL_SECONDS)
        ray.kill(self._myself)

    @property
    def _has_stopped(self) -> bool:
        return self._report.state is State.STOPPED

    def _note(self, note: str) -> None:
        self._tell(self._report.state, note)

    def _tell(self, state: State, note: str = "", error: str = "", task: TaskName | None = None) -> None:
        """Change the state and wake everyone who follows."""
        last = self._report
        if state is not last.state or (error and error != last.error):
            self._events.append(Event(time.time(), state, error, task))
        if state is State.RUNNING:
            self._report = Report(
                last.version + 1, state, incarnation=self._workforce.life, active=self._workforce.active
            )
        else:
            self._report = Report(
                last.version + 1, state, note, task or last.failed_task, error or last.error, last.incarnation,
                self._workforce.active,
            )  # fmt: skip
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _new_lease(self, seconds: float) -> Lease:
        return Lease(seconds, self._clock)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def wake_up(controller: Any) -> None:
    """Call the controller of this process, which begins as soon as Ray lets calls through."""
    while True:
        try:
            ray.get(controller.wake.remote())
            return
        except ray.exceptions.ActorUnavailableError:
            time.sleep(RENEWAL_SECONDS)
        except ray.exceptions.RayError:  # somebody has ended it
            return


def controller_class(name: str) -> type:
    """Return the class of the controller's actor; made in a function for the reason given at `worker_class`."""

    class Controller:
        def __init__(self, prepare: Callable[[], None], charter: bytes) -> None:
            import threading

            prepare()
            import ray

            from topology.on_ray.by_value import loads
            from topology.on_ray.charter import latest
            from topology.on_ray.controller import ControllerProcess, wake_up

            given, here = loads(charter), ray.get_runtime_context()
            again = given.state is not None and bool(here.was_current_actor_reconstructed)
            self._process = ControllerProcess(latest(given) if again else given, here.current_actor, again)
            if again:  # perhaps nobody is left who would call it
                threading.Thread(target=wake_up, args=(here.current_actor,), name="waking", daemon=True).start()

        async def wake(self) -> None:
            await self._process.wake()

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

        async def savepoint(self) -> str:
            return await self._process.savepoint()

        async def set_active(self, active: bool) -> None:
            await self._process.set_active(active)

        async def rebalance(self, layout: bytes) -> str:
            return await self._process.rebalance(layout)

        async def stop(self) -> Any:
            return await self._process.stop()

        async def logs(self, after: int) -> Any:
            return await self._process.logs(after)

        async def beat(self, worker: str, lines: Any, vitals: Any) -> bool:
            return await self._process.beat(worker, lines, vitals)

    Controller.__name__ = Controller.__qualname__ = name
    return Controller
