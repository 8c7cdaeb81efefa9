"""A user's own bolts on Ray, with a state: word count goes on after its workers have been killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from examples.word_count import LINES, word_count
from operators import CountWindow, StreamJoin
from tests.s3_server import below, s3_server
from tests.topology.waiting import LONG, wait_for
from topology import Input, MapBatches, RayRuntime, RunningTopology, State, Status, Topology, TopologyBuilder, Workers

pytestmark = pytest.mark.usefixtures("ray_cluster")

COUNT, SENT = 6_000, 200


class SmallSegments:
    """The check of an input. It makes snapshots frequent in the process that unpickles it."""

    def __call__(self, schema: pa.Schema) -> None:
        return

    def __setstate__(self, state: object) -> None:
        from topology.journal import opening

        setattr(opening, "SEGMENT_BYTES", 20_000)  # noqa: B010

    def __getstate__(self) -> object:
        return "small"


def counting() -> Topology:
    topology = word_count()
    lines = Input(LINES, check=SmallSegments())
    nodes = tuple(replace(node, component=lines) if node.name == "lines" else node for node in topology.nodes)
    return replace(topology, nodes=nodes)


def lines() -> pa.Table:
    return pa.table({"line": [f"w{n % 17} w{n % 5} w{n % 3} {n}" for n in range(COUNT)]}, schema=LINES)


def kill(running: RunningTopology, component: str) -> None:
    workers = running.status().workers
    os.kill(next(worker.pid for worker in workers if worker.pid and (component, 0) in worker.tasks), signal.SIGKILL)


def has_recovered(status: Status, times: int = 1) -> bool:
    """Whether so many failures are over: by one status, because the next may be of a recovery that has just begun."""
    return status.state is State.RUNNING and status.recoveries >= times


def snapshots(uri: str) -> list[str]:
    files, root = pafs.FileSystem.from_uri(uri)
    found = files.get_file_info(pafs.FileSelector(f"{root}/counted/snapshots/segments", allow_not_found=True))
    return [info.base_name for info in found]


def pairs(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def joining() -> Topology:
    """A bolt, a join behind it, and a bolt behind that."""
    builder = TopologyBuilder("joining")
    builder.input("a", Input(event_time="ts", check=SmallSegments()))
    builder.input("b", Input(event_time="ts"))
    builder.bolt("same", MapBatches(pairs)).global_grouping("b")
    join = StreamJoin("R", "S", "R.key = S.key", CountWindow(40), event_time="ts", select=["R.id", "S.id"])
    builder.join("pairs", join, inputs={"R": "a", "S": "same"})
    builder.bolt("after", MapBatches(pairs)).global_grouping("pairs")
    builder.sink().global_grouping("after")
    return builder.build()


def test_a_join_between_bolts_survives_whichever_worker_is_killed() -> None:
    count, sent = 4_000, 200
    table = pa.table({"id": range(count), "key": [n * 7 % 31 for n in range(count)], "ts": range(count)})
    topology = joining()
    element = next(name for name, _ in topology.task_names if name.startswith("pairs/") and "join" in name)
    with s3_server() as uri:
        state = below(uri, "kept")
        with RayRuntime(state=state).launch(topology, name="counted") as running:
            running.open("a", "a")
            running.open("b", "b")
            for start in range(0, count, sent):
                running.send("a", table.slice(start, sent), source="a")
                running.send("b", table.slice(start, sent), source="b")
                if start == count // 2:
                    wait_for(lambda: bool(snapshots(state)), "no snapshot was taken")
                    kill(running, element)
                elif start == count // 2 + 5 * sent:
                    wait_for(lambda: has_recovered(running.status()))
                    kill(running, "sequencer")
                elif start == count // 2 + 8 * sent:
                    wait_for(lambda: has_recovered(running.status(), 2))
                    running.rebalance(placement=Workers(2))
            running.finish()
            found = pa.Table.from_batches(list(running.results(timeout=LONG)))
            assert running.status().recoveries >= 2
    join = StreamJoin("R", "S", "R.key = S.key", CountWindow(40), event_time="ts", select=["R.id", "S.id"])
    alone = join.collect({"R": {"a": table}, "S": {"same": table}})
    assert found.select(["R.id", "S.id"]).combine_chunks().equals(alone.combine_chunks())


def test_words_are_counted_once_whichever_worker_is_killed() -> None:
    with s3_server() as uri:
        state = below(uri, "kept")
        with RayRuntime(state=state).launch(counting(), name="counted") as running:
            for start in range(0, COUNT, SENT):
                running.send("lines", lines().slice(start, SENT), source="text")
                if start == COUNT // 2:
                    wait_for(lambda: bool(snapshots(state)), "no snapshot was taken")
                    kill(running, "count")
                elif start == COUNT // 2 + 5 * SENT:
                    wait_for(lambda: has_recovered(running.status()))
                    kill(running, "sequencer")
            running.finish()
            results = [row for rows in running.results(timeout=LONG) for row in rows.to_pylist()]
            found = Counter({row["word"]: row["count"] for row in results})
            assert running.status().recoveries >= 2
    assert found == Counter(word for line in lines()["line"].to_pylist() for word in line.split())
