"""A topology run by one thread that picks the next message at random: the shipped tasks, any timing, replayable.

After every message the task that took it checks its invariants. A message is picked among the inputs that are not
blocked, so a run that comes to a halt before its end is a deadlock.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pyarrow as pa

from operators import StreamJoin
from tests.oracle import assert_same_result
from tests.strategies import JoinCase
from topology import DEFAULT_STREAM, Batch, Emit, End, Task, TaskContext, Topology, Watermark
from topology.graph.messages import Message
from topology.tasks.metrics import TaskCounters
from topology.tasks.task_loop import Outputs, TaskCore


class _Running:
    def __init__(self, topology: Topology, name: str, number: int) -> None:
        node, origins = topology.node(name), topology.origins(name)
        task = node.component.build(TaskContext(name, number, node.parallelism, origins))
        assert isinstance(task, Task)
        self.task = task
        self.core = TaskCore(task, origins, TaskCounters())
        self.queues: list[deque[Message]] = [deque() for _ in origins]
        self._idles = type(task).on_idle is not Task.on_idle
        self._idled = not self._idles

    @property
    def has_work(self) -> bool:
        return any(self.queues) or not (self._idled or self.core.finished)

    @property
    def can_work(self) -> bool:
        return bool(self._open()) or (not self._idled and not any(self.queues))

    def work(self, chance: random.Random) -> Iterator[Emit]:
        """Take a message of an input that is not blocked; without any message, be idle."""
        if not any(self.queues):
            self._idled = True
            return self.core.idle()
        index = chance.choice(self._open())
        self._idled = not self._idles
        return self.core.handle(index, self.queues[index].popleft())

    def _open(self) -> list[int]:
        return [index for index, queue in enumerate(self.queues) if queue and not self.core.blocked(index)]


def run_seeded(
    topology: Topology,
    inputs: Mapping[str, Mapping[str, list[pa.RecordBatch]]],
    seed: int,
    lost: Callable[[str, Message], bool] = lambda component, message: False,
    late: list[pa.RecordBatch] | None = None,
) -> list[pa.RecordBatch]:
    """Feed all inputs and return the batches that reach the main sink; `late` gets those of the other.

    `lost` says what a component fails to send.
    """
    chance = random.Random(seed)
    tasks = {
        (node.name, number): _Running(topology, node.name, number)
        for node in topology.nodes
        for number in range(node.parallelism)
    }
    results: list[pa.RecordBatch] = []
    late = [] if late is None else late
    sinks = topology.sinks
    outputs = {key: _outputs(topology, tasks, *key) for key in tasks}
    for stream, sources in inputs.items():
        tasks[stream, 0].queues[0].extend(_messages(sources, chance))
    while True:
        busy = sorted(key for key, running in tasks.items() if running.has_work)
        key = next((key for key in chance.sample(busy, len(busy)) if tasks[key].can_work), None)
        if key is None:
            break
        for emit in tasks[key].work(chance):
            if key[0] in sinks:
                if isinstance(emit.message, Batch):
                    (results if key[0] == topology.main_sink else late).append(emit.message.rows)
            elif not lost(key[0], emit.message):
                outputs[key].send(emit)
        tasks[key].task.check_invariants()
    waiting = {key: [len(queue) for queue in running.queues] for key, running in tasks.items() if any(running.queues)}
    assert not waiting, f"seed {seed}: everyone waits for someone else; messages left: {waiting}"
    return results


def _outputs(topology: Topology, tasks: Mapping[tuple[str, int], _Running], name: str, number: int) -> Outputs:
    channels = {}
    for consumer in topology.consumers(name):
        index = next(o.index for o in topology.origins(consumer) if (o.component, o.task) == (name, number))
        for task in range(topology.node(consumer).parallelism):
            channels[consumer, task] = partial(_push, tasks[consumer, task], index)
    return Outputs(topology, name, number, channels)


def _push(running: _Running, index: int, message: Message) -> None:
    running.queues[index].append(message)


def _messages(sources: Mapping[str, list[pa.RecordBatch]], chance: random.Random) -> list[Message]:
    """Announce all sources, then their batches, each source's in order."""
    messages: list[Message] = [Watermark(None, DEFAULT_STREAM, name) for name in sources]
    left = {name: deque(batch for batch in batches if batch.num_rows) for name, batches in sources.items()}
    first = dict.fromkeys(sources, 0)
    while left:
        name = chance.choice(sorted(left))
        if left[name]:
            rows = left[name].popleft()
            messages.append(Batch(DEFAULT_STREAM, rows, first=first[name], source=name, born=1.0))
            first[name] += rows.num_rows
        else:
            messages.append(End(DEFAULT_STREAM, name))
            del left[name]
    return [*messages, End()]


def check_schedule(case: JoinCase, join: StreamJoin, seed: int) -> None:
    """Under the schedule of `seed` the join gives the oracle's results in its order."""
    batches = run_seeded(join.topology(), case.batches(), seed)
    expected = case.expected().table
    assert_same_result(pa.Table.from_batches(batches) if batches else expected.slice(0, 0), expected)
