"""Whose turn it is: what has been sent is taken in together, and brief work stays on one thread."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tests.topology.waiting import LONG, wait_for
from topology import Batch, Bolt, Emit, Origin, Task, TaskContext, Topology, TopologyBuilder
from topology.graph.graph import TaskName
from topology.process.hosted_task import GroupSettings
from topology.process.task_group import TaskGroup

ROWS = pa.record_batch({"n": [1]})


class Gathering(Bolt):
    """Emits, when nothing waits, one row with the number of batches since the last time."""

    def build(self, context: TaskContext) -> Task:
        return GatheringTask()


class GatheringTask(Task):
    def __init__(self) -> None:
        self.fresh = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self.fresh += 1
        return ()

    def on_idle(self) -> Iterable[Emit]:
        fresh, self.fresh = self.fresh, 0
        return [Emit(Batch("default", pa.record_batch({"n": [fresh]})))] if fresh else []

    def on_end(self) -> Iterable[Emit]:
        return self.on_idle()


def gathering() -> Topology:
    builder = TopologyBuilder("gathering")
    builder.input("a")
    builder.input("b")
    builder.bolt("gather", Gathering()).shuffle_grouping("a").shuffle_grouping("b")
    builder.sink().shuffle_grouping("gather")
    return builder.build()


def test_what_was_sent_to_several_inputs_is_taken_in_together() -> None:
    topology = gathering()
    group = TaskGroup(topology, _names(topology), GroupSettings(threads=1), on_failure=_fail)
    group.connect()
    for _ in range(1_000):
        for stream in ("a", "b"):
            group.ingest.send(stream, stream, ROWS)
    group.ingest.finish("a")
    group.ingest.finish("b")
    group.start()
    found = []
    reader = group.results["results"].read()
    while (given := reader.next(LONG)) is not None:
        found += given[1].column("n").to_pylist()
    group.close_queues()
    group.join()
    assert sum(found) == 2_000
    assert len(found) <= 2, f"in parts of {found}"


def _fail(error: Exception) -> None:
    raise error


@dataclass(frozen=True)
class Waits(Bolt):
    """Emits each batch, and goes on only when somebody downstream has made the file."""

    file: str

    def build(self, context: TaskContext) -> Task:
        return WaitingTask(Path(self.file))


class WaitingTask(Task):
    def __init__(self, file: Path) -> None:
        self.file = file

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        yield Emit(batch)
        wait_for(self.file.exists)


@dataclass(frozen=True)
class Tells(Bolt):
    """Makes the file when a batch has arrived."""

    file: str

    def build(self, context: TaskContext) -> Task:
        return TellingTask(Path(self.file))


class TellingTask(Task):
    def __init__(self, file: Path) -> None:
        self.file = file

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self.file.touch()
        return ()


def test_a_turn_that_lasts_does_not_hold_back_what_it_has_emitted(tmp_path: Path) -> None:
    builder = TopologyBuilder("chain")
    builder.input("in")
    builder.bolt("waits", Waits(str(tmp_path / "arrived"))).shuffle_grouping("in")
    builder.bolt("tells", Tells(str(tmp_path / "arrived"))).shuffle_grouping("waits")
    builder.sink().shuffle_grouping("tells")
    topology = builder.build()
    group = TaskGroup(topology, _names(topology), GroupSettings(threads=2), on_failure=_fail)
    group.connect()
    group.start()
    wait_for(lambda: not group._threads._ready and not group._threads._at_work)  # every task has been idle once
    group.ingest.send("in", "in", ROWS)
    wait_for((tmp_path / "arrived").exists)
    group.ingest.finish("in")
    reader = group.results["results"].read()
    assert reader.next(LONG) is None
    assert reader.finished
    group.close_queues()
    group.join()


def _names(topology: Topology) -> list[TaskName]:
    return [(node.name, number) for node in topology.nodes for number in range(node.parallelism)]
