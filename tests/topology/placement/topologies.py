"""Random topologies for placement: every kind of component, groups beside inputs and sinks, wishes and labels."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from topology import Bolt, ClusterNode, Emit, MapBatches, Spout, SpoutTask, Task, TaskContext, Topology, TopologyBuilder


def same(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


class Numbers(Spout):
    def build(self, context: TaskContext) -> SpoutTask:
        return NumbersTask()


class NumbersTask(SpoutTask):
    def batches(self) -> Iterator[Emit]:
        return iter(())


@dataclass(frozen=True)
class Chatty(Bolt):
    beside = "inputs"

    def build(self, context: TaskContext) -> Task:
        raise NotImplementedError


@dataclass(frozen=True)
class Gathering(Bolt):
    beside = "sinks"

    def build(self, context: TaskContext) -> Task:
        raise NotImplementedError


LABELS: tuple[dict[str, str], ...] = ({}, {"zone": "a"}, {"zone": "b"})


@st.composite
def topologies(draw: st.DrawFn, labelled: bool = False, asking: bool = False) -> Topology:
    """A topology of one to a dozen components; each subscribes to some of those before it."""
    builder = TopologyBuilder("random")
    fed: list[str] = []

    def wishes() -> dict[str, object]:
        return {
            "cpus": draw(st.sampled_from([None, 0.5, 2])) if asking else None,
            "memory": draw(st.sampled_from([None, 1000])) if asking else None,
            "labels": draw(st.sampled_from(LABELS)) if labelled else None,
        }

    for number in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            builder.input(f"input-{number}").resources(**wishes())  # type: ignore[arg-type]
            fed.append(f"input-{number}")
        else:
            builder.spout(f"spout-{number}", Numbers(), draw(st.integers(1, 3))).resources(**wishes())  # type: ignore[arg-type]
            fed.append(f"spout-{number}")
    for number in range(draw(st.integers(0, 6))):
        bolt = draw(st.sampled_from([Chatty(), Gathering(), MapBatches(same), MapBatches(same)]))
        added = builder.bolt(f"bolt-{number}", bolt, draw(st.integers(1, 4)))
        for producer in draw(st.lists(st.sampled_from(fed), min_size=1, unique=True)):
            added.shuffle_grouping(producer)
        added.resources(**wishes())  # type: ignore[arg-type]
        fed.append(f"bolt-{number}")
    for number in range(draw(st.integers(0, 3))):
        sink = builder.sink(f"sink-{number}", aside=draw(st.booleans()))
        for producer in draw(st.lists(st.sampled_from(fed), min_size=1, unique=True)):
            sink.global_grouping(producer)
        sink.resources(**wishes())  # type: ignore[arg-type]
    return builder.build()


clusters = st.lists(
    st.builds(
        lambda number, free, busy, memory, labels: ClusterNode(
            f"node-{number}", f"10.0.0.{number}", free, free + busy, memory, labels
        ),
        st.integers(1, 250),
        st.sampled_from([0.0, 0.25, 1.0, 2.0, 4.0, 16.0]),
        st.sampled_from([0.0, 1.0, 3.5]),
        st.sampled_from([0, 500, 4000, 2**30]),
        st.sampled_from(LABELS),
    ),
    max_size=4,
)
