"""A topology whose tasks run in two groups, joined by edges over Flight: the rows are those of one group."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tests.topology.waiting import LONG, SHORT, done_within, wait_for
from topology import MapBatches, TaskError, Topology, TopologyBuilder
from topology.flight.auth import Authority, Grant, Right
from topology.flight.edge import FlightEdge
from topology.flight.edge_receiver import EdgeReceiver
from topology.flight.port import FlightPort
from topology.graph.graph import TaskName
from topology.handle.endpoint import Endpoint
from topology.process.task_group import GroupSettings, TaskGroup


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"n": [2 * value for value in rows.column("n").to_pylist()]})


def pipeline() -> Topology:
    builder = TopologyBuilder("pipeline")
    builder.input("in")
    builder.bolt("double", MapBatches(doubled), parallelism=2).shuffle_grouping("in")
    builder.sink().shuffle_grouping("double")
    return builder.build()


class Process:
    """A group with its port, as a worker has them."""

    def __init__(self, topology: Topology, names: list[TaskName], authority: Authority, edge_bytes: int) -> None:
        self.failures: list[Exception] = []
        self.group = TaskGroup(topology, names, GroupSettings(edge_bytes, threads=2), self.failures.append)
        self.port = FlightPort(authority)
        EdgeReceiver(self.port, {name: (task.origins, task.inbox) for name, task in self.group.tasks.items()})


@contextmanager
def processes(
    topology: Topology, *parts: list[TaskName], edge_bytes: int = 1 << 20
) -> Iterator[tuple[list[Process], dict[tuple[TaskName, TaskName], FlightEdge]]]:
    authority = Authority()
    token = authority.issue(Grant(Right.CHANNEL))
    made = [Process(topology, names, authority, edge_bytes) for names in parts]
    where = {name: process for process in made for name in process.group.tasks}
    edges = {
        (producer, consumer): FlightEdge(
            Endpoint(where[consumer].port.location, token), producer, consumer,
            topology.input_index(producer, consumer), 0, edge_bytes, where[producer].failures.append,
        )
        for producer in where
        for consumer in topology.targets(producer)
        if where[producer] is not where[consumer]
    }  # fmt: skip
    for process in made:
        process.group.connect({pair: edge for pair, edge in edges.items() if where[pair[0]] is process})
        process.group.start()
    try:
        yield made, edges
    finally:
        for process in made:
            process.group.close_queues()
            process.group.join()
            process.port.close()


HERE: list[TaskName] = [("in", 0), ("double", 0)]
THERE: list[TaskName] = [("double", 1), ("results", 0)]


def test_rows_cross_between_groups_as_soon_as_their_task_pauses() -> None:
    with processes(pipeline(), HERE, THERE) as ((here, there), edges):
        assert len(edges) == 2
        results = there.group.results["results"]
        for number in range(20):
            here.group.ingest.send("in", "in", pa.record_batch({"n": [number]}))
            rows = results.next(LONG)
            assert rows is not None
            assert rows.column("n").to_pylist() == [2 * number]
        here.group.ingest.finish("in", None)
        assert results.next(LONG) is None
        assert results.finished
        assert all(edge.join(LONG) for edge in edges.values())
        assert not here.failures
        assert not there.failures


def test_unread_results_stop_the_sender_in_the_other_group() -> None:
    rows = pa.record_batch({"n": list(range(1000))})
    with processes(pipeline(), HERE, THERE, edge_bytes=20_000) as ((here, there), _):
        inbox = here.group.tasks["in", 0].inbox
        sent = 0
        while done_within(lambda: inbox.nbytes == 0, 20 * SHORT):
            here.group.ingest.send("in", "in", rows)
            sent += 1
            assert sent < 200, "1.6 MB went into edges of 20 kB"
        results = there.group.results["results"]
        for _ in range(sent):
            assert results.next(LONG) is not None
        wait_for(lambda: inbox.nbytes == 0)


def test_an_edge_that_breaks_is_reported_to_its_group() -> None:
    with processes(pipeline(), HERE, THERE) as ((here, there), _):
        there.group.close_queues(TaskError("double", 1, "failed"))
        for number in range(2):
            here.group.ingest.send("in", "in", pa.record_batch({"n": [number]}))
        wait_for(lambda: bool(here.failures), "nobody heard of the broken edge")
