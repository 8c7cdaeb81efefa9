"""A group of tasks that run in one process: all tasks of an embedded topology, or those of one worker of a cluster.

Inside a group, messages go from inbox to inbox and rows are never copied. An edge to a task elsewhere is an
`OutgoingEdge`, and messages from elsewhere are put into the inboxes by their receiver. A few threads drive all tasks,
as the kernels release the interpreter lock. Spouts have threads of their own, because they may wait for the file or
socket that they read.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from topology.durable.group_commit import Ticket
from topology.entry.ingest import Ingest
from topology.graph.components import DecidingTask, Emit, Input, Sink, SpoutTask, Task
from topology.graph.errors import InterlaceError, StoppedError, TaskError
from topology.graph.graph import Node, TaskName, Topology
from topology.graph.messages import Batch, Message
from topology.handle.handle import log
from topology.handle.results_queue import Progress, ResultsQueue
from topology.handle.spilling_results import results_queue
from topology.handle.status import Vitals
from topology.journal.events import Acknowledged
from topology.journal.journal import Journal
from topology.journal.opening import Opened
from topology.journal.recording import RecordedSteps, RecordingCore, repeat
from topology.journal.snapshot_rounds import SnapshotRounds
from topology.journal.snapshots import Snapshots
from topology.journal.step_rows import at_rows, rows_in_words
from topology.process.hosted_task import GroupSettings, HostedTask
from topology.process.task_threads import DrivenTask, TaskThreads
from topology.process.ticker import Ticker
from topology.process.vitals import read_vitals
from topology.spouts.fetching import Fetching, is_fetched
from topology.steps.aligned import AlignedCore, send_and_keep
from topology.steps.inner import InnerCore
from topology.steps.leaving import Leaving
from topology.steps.sequenced import (
    kept_as,
    left_part,
    tasks_with_snapshots,
    ticks_due,
)
from topology.tasks.activity import Activity
from topology.tasks.inbox import Inbox
from topology.tasks.metrics import TaskMetrics
from topology.tasks.outgoing_edge import OutgoingEdge
from topology.tasks.spill_room import spill_room
from topology.tasks.task_hook import call_hooks
from topology.tasks.task_loop import Channel, Outputs, TaskCore, run_spout
from topology.tasks.user_traceback import user_traceback

UNREAD_WARNING_SECONDS = 10.0
JOIN_SECONDS = 10.0


class TaskGroup:
    """The tasks of one process. Made, connected, started, closed: each once and in this order.

    on_failure: called with the error of a task that fails, and once for each edge that breaks.
    opened:     the journal of the topology, if this group has its inputs and the task that decides; None: none is kept.
    snapshots:  where the tasks of a topology with a sequencer keep theirs.
    results:    the queues of an earlier group with the same sinks, which has ended; None: there was none.
    driven:     the tasks that are not spouts, by name.
    """

    def __init__(
        self,
        topology: Topology,
        names: Sequence[TaskName],
        settings: GroupSettings,
        on_failure: Callable[[TaskError], None],
        opened: Opened | None = None,
        results: Mapping[str, ResultsQueue] | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self.topology = topology
        self._opened = opened
        self.snapshots = snapshots
        self.rounds: SnapshotRounds | None = None
        if opened is not None and snapshots is not None:
            tasks = tasks_with_snapshots(topology)
            self.rounds = SnapshotRounds(opened.journal, opened.life, tasks, snapshots)
        self._recorded_progress: Ticket | None = None
        self._steps: RecordedSteps | None = None
        self._spill_directory = settings.spill_directory
        room = spill_room(settings.spill_directory)
        room.admit(settings.budget)
        self._release_budget = weakref.finalize(self, room.release, settings.budget)
        self.tasks = {
            (component, number): HostedTask(topology, topology.node(component), number, settings)
            for component, number in names
        }
        self.results: Mapping[str, ResultsQueue] = results or {
            sink: results_queue(sink, topology.node(sink).component, settings.edge_bytes, settings.spill_directory)
            for sink in topology.sinks
            if (sink, 0) in self.tasks
        }
        self._activity = Activity()
        self.ingest = Ingest(settings.spill_directory, settings.clock, opened, self._activity)
        for (component, _), task in self.tasks.items():
            if isinstance(task.node.component, Input):
                put, wait = partial(self._put_input, task.inbox), partial(self._wait_for_room, task.inbox)
                self.ingest.add(component, task.node.component, put, wait)
        if opened is not None:
            self._keep_progress(opened, rejoins=results is not None)
        self._on_failure = on_failure
        self._hooks = settings.hooks
        self._hooked = False
        self._edges: dict[tuple[TaskName, TaskName], OutgoingEdge] = {}
        self.driven: dict[TaskName, DrivenTask] = {}
        self._spouts: dict[TaskName, threading.Thread] = {}
        fetched = [(hosted, partial(self._fail, hosted)) for hosted in self.tasks.values()]
        self._fetching = [Fetching(each.node, self.ingest, fail) for each, fail in fetched if is_fetched(each.node)]
        self._threads = TaskThreads(settings.threads or 1 + (os.cpu_count() or 1), self._task_failed)
        self._ticker: Ticker | None = None

    def connect(
        self,
        edges: Mapping[tuple[TaskName, TaskName], OutgoingEdge] | None = None,
        near: Callable[[str], Sequence[int]] | None = None,
    ) -> None:
        """Join the tasks to each other and, by `edges` from producer to consumer, to tasks in other processes.

        near: the tasks of a component on this machine; None: all of them.
        """
        self._edges = dict(edges or {})
        if near is None or self.topology.sequencer:  # where tasks run may change; what they do must not
            near = lambda component: range(self.topology.node(component).parallelism)  # noqa: E731
        for name, hosted in self.tasks.items():
            if isinstance(hosted.task, Task):
                self.driven[name] = self._drive(hosted, hosted.task, near)
            else:
                spout = partial(self._run_spout, hosted, hosted.task, near)
                self._spouts[name] = threading.Thread(target=spout, name=f"{name[0]}[{name[1]}]", daemon=True)
        for name, driven in self.driven.items():
            self._call_when_ready(name, driven)

    def start(self) -> None:
        """Start the threads; each task is idle once before its first message."""
        for task in self.tasks.values():
            call_hooks(self._hooks, lambda hook, task=task: hook.on_start(task.context))  # type: ignore[misc]
        self._hooked = True
        self._threads.start()
        self.schedule_all()
        for spout in self._spouts.values():
            spout.start()
        self.ingest.resume()
        for fetching in self._fetching:
            fetching.start()
        if intervals := self.tick_intervals:
            self._ticker = Ticker(intervals, self._tick)
            self._ticker.start()

    def set_active(self, active: bool) -> None:
        """Let inputs and spouts bring rows from now on, or none; all else goes on. Harmless when repeated."""
        self.ingest.set_active(active)

    @property
    def tick_intervals(self) -> dict[TaskName, float]:
        """The tasks that a clock ticks for, each with its interval in seconds; a sequencer tells those after it."""
        clocked = [name for name in self.driven if not self.tasks[name].is_aligned]
        asked = {name: self.tasks[name].node.component.tick_seconds for name in clocked}
        return {name: seconds for name, seconds in asked.items() if seconds is not None}

    @property
    def journal(self) -> Journal:
        """The journal; only where one is kept here."""
        assert self._opened is not None, "a state is kept elsewhere, or not at all"
        return self._opened.journal

    def schedule_all(self) -> TaskThreads:
        """Make every task ready, and return what they wait for: threads, or somebody who steps them by hand."""
        for driven in self.driven.values():
            self._threads.notify(driven)
        return self._threads

    def vitals(self) -> Vitals:
        """What this process uses, with what it keeps of the topology's state."""
        trouble = spill_room(self._spill_directory).trouble
        found = replace(read_vitals(self._spill_directory), trouble=trouble)
        if self._opened is None:
            return found
        journal, rounds = self._opened.journal, self.rounds
        waiting = journal.waits_for_disk
        return replace(
            found,
            log_bytes=journal.kept_bytes,
            checkpoint_bytes=0 if rounds is None else rounds.kept_bytes,
            free_state=journal.free_bytes,
            trouble=trouble or (waiting and f"send() waits for {waiting}; make room, or read and acknowledge results"),
        )

    def metrics(self) -> tuple[TaskMetrics, ...]:
        """What each task has counted so far."""
        return tuple(
            task.metrics(self.results[component].metrics() if component in self.results else None)
            for (component, _), task in self.tasks.items()
        )

    def task_of(self, thread: int) -> TaskName | None:
        """The task that a thread of this process works for; None: for none."""
        driven = self._threads.at_work_for(thread)
        return next(
            (name for name, each in self.driven.items() if each is driven),
            next((name for name, spout in self._spouts.items() if spout.ident == thread), None),
        )

    def close_queues(self, error: Exception | None = None) -> None:
        """Close all queues and edges, which wakes everyone who waits; readers of results get `error`."""
        self.close_edges()
        for queue in self.results.values():
            queue.close(error)

    def close_edges(self) -> None:
        """As `close_queues`, but the results stay: another group goes on with them."""
        self._activity.close()
        for task in self.tasks.values():
            task.inbox.close()
        for edge in self._edges.values():
            edge.close()

    def join(self) -> list[str]:
        """Wait until the threads have ended, after `close_queues`; log and return the tasks that do not end."""
        if self._ticker is not None:
            self._ticker.stop()
        busy = self._threads.stop(JOIN_SECONDS)
        for spout in self._spouts.values():
            if spout.ident is not None:
                spout.join(JOIN_SECONDS)
        busy += [spout.name for spout in self._spouts.values() if spout.is_alive()]
        self.ingest.close()
        busy += [name for fetching in self._fetching for name in fetching.join(JOIN_SECONDS)]
        for name in busy:
            log.warning("%s is still busy; it ends with the process", name)
        self.tell_stopped()
        self._release_budget()
        if self.snapshots is not None:
            self.snapshots.close()
        if self._opened is not None:
            self._opened.journal.close()
        return busy

    def tell_stopped(self) -> None:
        """Let the hooks know, once, that the tasks that were started get no more calls."""
        hooked, self._hooked = self._hooked, False
        for task in self.tasks.values() if hooked else ():
            call_hooks(self._hooks, lambda hook, task=task: hook.on_stop(task.context))  # type: ignore[misc]

    def _tick(self, name: TaskName, seconds: float) -> None:
        self.driven[name].tick(seconds)
        self._threads.notify(self.driven[name])

    def _drive(self, hosted: HostedTask, task: Task, near: Callable[[str], Sequence[int]]) -> DrivenTask:
        """Make the part of a task that the threads use: how it takes messages, sends, and asks for room."""
        depth = self._depth(hosted.node)
        send: Callable[[Emit], None]
        room: Callable[[], bool]
        edges: dict[TaskName, OutgoingEdge] = {}
        outputs: Outputs | None = None
        if hosted.node.name in self.results:
            queue = self.results[hosted.node.name]
            send, room = partial(queue.push, hosted.counters), lambda: queue.has_room
        else:
            inboxes, edges = self._targets(hosted.name)
            channels: dict[TaskName, Channel] = {
                name: partial(inbox.push, index) for name, (inbox, index) in inboxes.items()
            }
            channels |= {name: edge.push for name, edge in edges.items()}
            outputs = self._outputs(hosted, channels, near)
            send = outputs.send
            main = {name for name in [*inboxes, *edges] if self._holds_back(hosted.node, name[0])}
            room = partial(
                _all_have_room,
                [inbox for name, inbox in inboxes.items() if name in main],
                [edge for name, edge in edges.items() if name in main],
            )
        pause = partial(_flush, list(edges.values()))
        if self._opened is not None and isinstance(task, DecidingTask) and hosted.node is self.topology.deciding:
            if self.snapshots is not None and outputs is not None:
                send = partial(send_and_keep, hosted.name, self.snapshots, outputs)
            core, send, room = self._recorded(hosted, task, self._opened, send, room, pause)
        elif hosted.is_aligned:
            core = self._aligned(hosted, task, outputs)
        elif hosted.node.follows:
            core = self._inner(hosted, task)
        else:
            core = TaskCore(task, hosted.origins, hosted.counters)
        shown = f"{hosted.node.name}[{hosted.number}]"
        return DrivenTask(shown, depth, core, hosted.inbox, send, room, pause, hosted.counters)

    def _aligned(self, hosted: HostedTask, task: Task, outputs: Outputs | None) -> TaskCore:
        """Let a task take the steps of its inputs in turn, and keep snapshots between them."""
        assert self.snapshots is not None, "a topology with a sequencer has a place for snapshots"
        has_state = hosted.node.component.snapshots and not isinstance(hosted.node.component, Sink)
        return AlignedCore(
            task, hosted.feeders, hosted.counters, hosted.given, self.topology.sequencer, outputs,
            partial(self.snapshots.save, kept_as(self.topology, hosted.name)) if has_state else None,
            partial(self.snapshots.load, kept_as(self.topology, hosted.name)),
            ticks_due(self.topology, hosted.node.name), hosted.node.component.decides,
        )  # fmt: skip

    def _inner(self, hosted: HostedTask, task: Task) -> TaskCore:
        """Let a task inside a join go on as it can, and marks meet there."""
        assert self.snapshots is not None, "a topology with a sequencer has a place for snapshots"
        left = left_part(self.topology, hosted.node.name)
        return InnerCore(
            task, hosted.origins, hosted.counters, None if left is None else Leaving(),
            partial(self.snapshots.save, left or hosted.name), partial(self.snapshots.load, left or hosted.name),
        )  # fmt: skip

    def _recorded(
        self,
        hosted: HostedTask,
        task: DecidingTask,
        opened: Opened,
        send: Callable[[Emit], None],
        room: Callable[[], bool],
        flush: Callable[[], None],
    ) -> tuple[TaskCore, Callable[[Emit], None], Callable[[], bool]]:
        """Put the journal between a deciding task and its consumers: how it is called, sends, and asks for room."""

        def sent() -> None:
            flush()
            self._threads.notify_of_room(self.driven[hosted.name])

        def lost(error: InterlaceError) -> None:
            if not isinstance(error, StoppedError):
                failure = TaskError(*hosted.name, str(error))
                failure.__cause__ = error
                self._on_failure(failure)

        steps = self._steps = RecordedSteps(task, opened.journal, send, sent, lost, self.rounds)
        resumes = opened.resumes(self.topology.sinks)
        again = repeat(task, hosted.origins, resumes, opened.replay, opened.journal)
        core = RecordingCore(task, hosted.origins, hosted.counters, steps, again)
        return core, steps.send, partial(steps.has_room, room)

    def _holds_back(self, producer: Node, consumer: str) -> bool:
        """Whether a full queue of the consumer makes the producer wait; see `Component.side_streams`."""
        between = [edge for edge in self.topology.edges if (edge.producer, edge.consumer) == (producer.name, consumer)]
        return any(edge.stream not in producer.component.side_streams for edge in between)

    def _depth(self, node: Node) -> float:
        """How far downstream a component is. Inputs come right after their first consumer in this order.

        So a consumer sees all rows that have been sent, not the first of them, and takes them in together.
        """
        names = [each.name for each in self.topology.nodes]
        if isinstance(node.component, Input):
            return min((names.index(name) for name in self.topology.consumers(node.name)), default=0) + 0.5
        return names.index(node.name)

    def _call_when_ready(self, name: TaskName, driven: DrivenTask) -> None:
        """Schedule a task when a message arrives for it, and when a queue or an edge that it fills has room again."""
        hosted = self.tasks[name]
        notify = partial(self._threads.notify, driven)
        hosted.inbox.on_arrival = notify
        feeders = [self.driven.get(feeder) for feeder in hosted.feeders]
        hosted.inbox.on_room = partial(self._room_for, feeders)
        if name[0] in self.results:
            self.results[name[0]].call_when_room(notify)
        for (producer, _), edge in self._edges.items():
            if producer == name:
                edge.on_room = notify

    def _room_for(self, feeders: list[DrivenTask | None], index: int) -> None:
        feeder = feeders[index]
        if feeder is not None:  # spouts, and senders from elsewhere, wait in threads of their own
            self._threads.notify_of_room(feeder)

    def _targets(self, name: TaskName) -> tuple[dict[TaskName, tuple[Inbox, int]], dict[TaskName, OutgoingEdge]]:
        """The inboxes here that a task sends to, each with the index of its input there, and its edges to elsewhere."""
        inboxes: dict[TaskName, tuple[Inbox, int]] = {}
        edges: dict[TaskName, OutgoingEdge] = {}
        for target in self.topology.targets(name):
            if target in self.tasks:
                inboxes[target] = (self.tasks[target].inbox, self.topology.input_index(name, target))
            else:
                edges[target] = self._edges[name, target]
        return inboxes, edges

    def _outputs(
        self, hosted: HostedTask, channels: Mapping[TaskName, Channel], near: Callable[[str], Sequence[int]]
    ) -> Outputs:
        return Outputs(self.topology, hosted.node.name, hosted.number, channels, near)

    def _run_spout(self, hosted: HostedTask, task: SpoutTask, near: Callable[[str], Sequence[int]]) -> None:
        outputs = self.spout_outputs(hosted, near)
        try:
            wait = partial(self._activity.wait, f"spout '{hosted.node.name}'")
            run_spout(task, outputs.send, outputs.send_all, hosted.counters, wait)
        except StoppedError:
            return
        except BaseException as error:
            self._fail(hosted, error)

    def spout_outputs(self, hosted: HostedTask, near: Callable[[str], Sequence[int]]) -> Outputs:
        """Where the rows of a spout go; each waits for room."""
        inboxes, edges = self._targets(hosted.name)
        channels: dict[TaskName, Channel] = {
            name: partial(inbox.put, index) for name, (inbox, index) in inboxes.items()
        }
        channels |= {name: edge.put for name, edge in edges.items()}
        return self._outputs(hosted, channels, near)

    def _task_failed(self, driven: DrivenTask, error: BaseException) -> None:
        name = next(name for name, each in self.driven.items() if each is driven)
        hosted, core = self.tasks[name], driven.core
        rows = self._rows_of(hosted, core.last)
        rows = rows or self.rows_after(core.passed)
        self._fail(hosted, error, rows, None if rows else core.passed)

    def _rows_of(self, hosted: HostedTask, last: tuple[int, Message] | None) -> str:
        """The rows that a task was given last, in words, where they are those of a source; otherwise nothing."""
        if last is None:
            return ""
        index, batch = last
        if not isinstance(batch, Batch) or not batch.source:
            return ""
        producer = self.topology.origins(hosted.node.name)[index].component
        stream = batch.stream if producer == self.topology.sequencer else producer
        if stream not in self.topology.inputs:
            return ""
        edges = [edge for edge in self.topology.edges if (edge.producer, edge.consumer) == (producer, hosted.node.name)]
        if all(edge.grouping.keeps_batches for edge in edges):
            return rows_in_words(stream, batch.source, batch.first, batch.end)
        return f"rows from {batch.first:,} on of {stream} from {batch.source}"

    def rows_after(self, seq: int) -> str:
        """The rows of the step behind `seq` in words, where that is known."""
        return "" if self._steps is None else self._steps.rows.after(seq)

    def _fail(self, hosted: HostedTask, error: BaseException, rows: str = "", after: int | None = None) -> None:
        call_hooks(self._hooks, lambda hook: hook.on_error(hosted.context, error))
        failure = TaskError(*hosted.name, at_rows(rows, user_traceback(error)))
        failure.after = after
        self._on_failure(failure)

    def _put_input(self, inbox: Inbox, message: Message) -> None:
        """Queue a message for an input; log a warning while it waits because results are unread."""
        while not inbox.put(0, message, timeout=UNREAD_WARNING_SECONDS):
            self._warn_of_unread()

    def _warn_of_unread(self) -> None:
        unread = sum(queue.nbytes for queue in self.results.values())
        if unread:
            log.warning("send() waits: %d bytes of results are unread; read results() in another thread", unread)

    def _keep_progress(self, opened: Opened, rejoins: bool) -> None:
        """Let the sinks go on where they were, and record how far their results are acknowledged."""
        for sink, queue in self.results.items():
            queue.on_progress = partial(self._acknowledged, opened.journal, sink)
            for resume in opened.resumes([sink]):
                if rejoins:
                    queue.rejoin(resume)
                else:
                    queue.resume(resume)

    def _acknowledged(self, journal: Journal, sink: str, progress: Progress) -> None:
        with suppress(InterlaceError):  # a journal that has ended has told everybody
            self.record_progress(journal, sink, progress)

    def record_progress(self, journal: Journal, sink: str, progress: Progress) -> Ticket:
        """Record how far the results of a sink have been acknowledged, and forget what nothing depends on any more."""
        ticket = self._recorded_progress = journal.record(Acknowledged(sink, *progress))
        if self.rounds is None:
            journal.trim(ticket)
        else:
            self.rounds.trim(ticket)
        return ticket

    def wait_for_acknowledgements(self) -> None:
        """Wait until all that has been acknowledged is so after a failure, too."""
        recorded = self._recorded_progress
        if recorded is not None:
            recorded.wait()

    def _wait_for_room(self, inbox: Inbox, batch: Batch) -> None:
        """As `_put_input`, without queueing anything."""
        while not inbox.wait_for_room(0, batch, timeout=UNREAD_WARNING_SECONDS):
            self._warn_of_unread()


def _all_have_room(inboxes: list[tuple[Inbox, int]], edges: list[OutgoingEdge]) -> bool:
    return all(inbox.has_room(index) for inbox, index in inboxes) and all(edge.has_room for edge in edges)


def _flush(edges: list[OutgoingEdge]) -> None:
    for edge in edges:
        edge.flush()
