"""Side streams: a component goes on although the consumers of its side stream do not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pytest

from tests.topology.process.processes import processes
from tests.topology.waiting import LONG, SHORT, done_within, wait_for
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext, Topology, TopologyBuilder
from topology.graph.graph import TaskName

ROWS = pa.record_batch({"n": list(range(1000))})
EDGE_BYTES = 20_000


class SplitTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        yield Emit(Batch("side", batch.rows))
        yield Emit(Batch("main", batch.rows))
        yield Emit(Punctuation(batch.first))


@dataclass(frozen=True)
class Split(Bolt):
    """Sends rows two ways, a step at a time."""

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {"main": None, "side": None}

    def build(self, context: TaskContext) -> Task:
        return SplitTask()


@dataclass(frozen=True)
class SplitAside(Split):
    side_streams: ClassVar[frozenset[str]] = frozenset({"side"})


class StuckTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        raise AssertionError("it takes nothing")

    def blocked(self, origin: Origin) -> bool:
        return True


@dataclass(frozen=True)
class Stuck(Bolt):
    """Takes nothing, ever."""

    def build(self, context: TaskContext) -> Task:
        return StuckTask()


def topology(split: Bolt) -> Topology:
    builder = TopologyBuilder("split")
    builder.input("in")
    builder.bolt("split", split).shuffle_grouping("in")
    builder.bolt("stuck", Stuck()).global_grouping("split", "side")
    builder.sink().global_grouping("split", "main")
    return builder.build()


MAIN: list[TaskName] = [("in", 0), ("split", 0), ("results", 0)]
SIDE: list[TaskName] = [("stuck", 0)]


@pytest.mark.parametrize("parts", [([*MAIN, *SIDE],), (MAIN, SIDE)], ids=["one process", "two processes"])
def test_a_side_stream_holds_nobody_back(parts: tuple[list[TaskName], ...]) -> None:
    with processes(topology(SplitAside()), *parts, edge_bytes=EDGE_BYTES) as ((here, *_), _):
        results = here.group.results["results"].read()
        for _ in range(50):
            here.group.ingest.send("in", "in", ROWS)
            found = results.next(LONG)
            assert found is not None
            results.acknowledge(found[0] + found[1].num_rows - 1)


@pytest.mark.parametrize("parts", [([*MAIN, *SIDE],), (MAIN, SIDE)], ids=["one process", "two processes"])
def test_any_other_stream_does(parts: tuple[list[TaskName], ...]) -> None:
    with processes(topology(Split()), *parts, edge_bytes=EDGE_BYTES) as ((here, *_), _):
        for _ in range(4):
            here.group.ingest.send("in", "in", ROWS)
        inbox = here.group.tasks["split", 0].inbox
        wait_for(lambda: inbox.nbytes > 0)
        assert not done_within(lambda: inbox.nbytes == 0, SHORT)
