"""A topology whose tasks run in two groups, joined by edges over Flight: the rows are those of one group."""

import pyarrow as pa

from tests.topology.process.processes import processes
from tests.topology.waiting import LONG, SHORT, done_within, wait_for
from topology import MapBatches, TaskError, Topology, TopologyBuilder
from topology.graph.graph import TaskName


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"n": [2 * value for value in rows.column("n").to_pylist()]})


def pipeline() -> Topology:
    builder = TopologyBuilder("pipeline")
    builder.input("in")
    builder.bolt("double", MapBatches(doubled), parallelism=2).shuffle_grouping("in")
    builder.sink().shuffle_grouping("double")
    return builder.build()


HERE: list[TaskName] = [("in", 0), ("double", 0)]
THERE: list[TaskName] = [("double", 1), ("results", 0)]


def test_rows_cross_between_groups_as_soon_as_their_task_pauses() -> None:
    with processes(pipeline(), HERE, THERE) as ((here, there), edges):
        assert len(edges) == 2
        results = there.group.results["results"].read()
        for number in range(20):
            here.group.ingest.send("in", "in", pa.record_batch({"n": [number]}))
            found = results.next(LONG)
            assert found is not None
            assert found[0] == number
            assert found[1].column("n").to_pylist() == [2 * number]
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
        results = there.group.results["results"].read()
        for _ in range(sent):
            found = results.next(LONG)
            assert found is not None
            results.acknowledge(found[0] + found[1].num_rows - 1)
        wait_for(lambda: inbox.nbytes == 0)


def test_an_edge_that_breaks_is_reported_to_its_group() -> None:
    with processes(pipeline(), HERE, THERE) as ((here, there), _):
        there.group.close_queues(TaskError("double", 1, "failed"))
        for number in range(2):
            here.group.ingest.send("in", "in", pa.record_batch({"n": [number]}))
        wait_for(lambda: bool(here.failures), "nobody heard of the broken edge")
