"""A watch sees rates, shares of time, edges and latencies, and judges what holds a topology back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

import interlace as il
from interlace.watching.look import Look
from interlace.watching.report import graph, report
from interlace.watching.verdict import judge
from interlace.watching.watch import KEPT_LOOKS, Watch, point
from tests.topology.waiting import wait_for
from topology import Metrics, Status, TaskMetrics


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


PACE = threading.Semaphore(0)


def slowly(rows: pa.RecordBatch) -> pa.RecordBatch:
    PACE.acquire()
    return rows


def chain(function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> il.Topology:
    builder = il.TopologyBuilder("chain")
    builder.input("in", il.Input())
    builder.bolt("early", il.MapBatches(lambda rows: rows)).shuffle_grouping("in")
    builder.bolt("work", il.MapBatches(function)).shuffle_grouping("early")
    builder.sink().shuffle_grouping("work")
    return builder.build()


def numbers(count: int = 100) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(count), pa.int64())})


def read_to_the_end(running: il.Handle, sending: threading.Thread) -> int:
    """Read results while another thread still sends; return the rows."""

    def end() -> None:
        sending.join()
        running.finish()

    ending = threading.Thread(target=end)
    ending.start()
    rows = sum(batch.num_rows for batch in running.results())
    ending.join()
    return rows


def test_rates_are_rows_between_looks_and_the_ring_forgets() -> None:
    clock = Clock()
    with il.LocalRuntime().launch(chain(lambda rows: rows)) as running:
        watch = Watch(running, clock=clock)
        watch.look()
        for _ in range(3):
            running.send("in", numbers())
        wait_for(lambda: running.metrics().of("results")[0].rows_in == 300)
        clock.now += 2
        watch.look()
        last = watch.series()[-1]
        assert (last["rows_in_rate"], last["rows_out_rate"]) == (150.0, 150.0)
        found = report(watch)
        assert {(edge["from"], edge["to"], edge["rows"]) for edge in found["edges"]} == {
            ("in", "early", 300), ("early", "work", 300), ("work", "results", 300),
        }  # fmt: skip
        assert [each["component"] for each in found["components"]] == ["in", "early", "work", "results"]
        assert found["verdict"]["health"] == "well"
        assert found["verdict"]["speed"] == "150 rows/s in, 150 rows/s out"
        for _ in range(KEPT_LOOKS + 5):
            clock.now += 1
            watch.look()
        assert len(watch.series()) == KEPT_LOOKS
        assert len(watch.series(after=clock.now - 3)) == 3


def test_the_component_that_holds_the_others_back_is_named() -> None:
    with il.LocalRuntime(edge_bytes=1 << 10).launch(chain(slowly)) as running:
        sending = threading.Thread(target=lambda: [running.send("in", numbers()) for _ in range(50)])
        sending.start()
        wait_for(lambda: running.metrics().of("early")[0].blocked_seconds > 0.2)
        watch = Watch(running)
        watch.look()
        wait_for(lambda: running.metrics().of("early")[0].blocked_seconds > 0.5)
        watch.look()
        verdict = watch.verdict()
        assert verdict.component == "work"
        assert verdict.health == "attention"
        assert verdict.bottleneck.startswith("'work' is the bottleneck: its busiest task works 100% of the time")
        parts = {each["component"]: each for each in report(watch)["components"]}
        assert parts["early"]["blocked"] > 0.9
        assert parts["work"]["busy"] > 0.9
        for _ in range(50):
            PACE.release()
        assert read_to_the_end(running, sending) == 5000


def test_a_reader_that_does_not_read_is_named() -> None:
    with il.LocalRuntime(edge_bytes=1 << 10).launch(chain(lambda rows: rows)) as running:
        sending = threading.Thread(target=lambda: [running.send("in", numbers()) for _ in range(50)])
        sending.start()
        wait_for(lambda: running.metrics().of("results")[0].blocked_seconds > 0.2)
        watch = Watch(running)
        watch.look()
        wait_for(lambda: running.metrics().of("results")[0].blocked_seconds > 0.5)
        watch.look()
        assert watch.verdict().bottleneck.startswith("Whoever reads 'results' is the bottleneck")
        assert read_to_the_end(running, sending) == 5000


def test_the_source_that_all_wait_for_and_late_rows_are_told() -> None:
    start = datetime(2024, 5, 1, 8)
    join = il.StreamJoin("R", "S", "R.x <= S.x", il.TimeWindow("1 min"), event_time="ts")

    def rows(*seconds: int | None) -> pa.Table:
        times = [None if second is None else start + timedelta(seconds=second) for second in seconds]
        return pa.table({"x": list(range(len(seconds))), "ts": pa.array(times, pa.timestamp("us"))})

    with join.launch() as running:
        watch = Watch(running)
        running.send("R", rows(0, 30, 90))
        wait_for(lambda: watch.look().metrics.total("waiting_rows") == 3)
        assert watch.verdict().bottleneck == (
            "All wait for stream 'S': none of its sources has sent rows; 3 rows wait."
        )
        running.send("S", rows(None, 5))
        wait_for(lambda: watch.look().metrics.total("waiting_rows") == 2)
        told = "All wait for source 'S' of stream 'S', which is 85 s behind; 2 rows wait."
        wait_for(lambda: bool(watch.look()) and watch.verdict().bottleneck == told)
        assert watch.verdict().loss.startswith("1 without an event time rows take no part")
        assert watch.series()[-1]["behind:S/S"] == 85.0
        assert report(watch)["late"]["no event time"]["rows"] == 1


def test_consumers_get_every_look_and_their_errors_do_no_harm() -> None:
    seen: list[float] = []

    def broken(look: object) -> None:
        raise ValueError("mine")

    with il.LocalRuntime().launch(chain(lambda rows: rows)) as running:
        watch = Watch(running, interval=0.01, consumers=(broken, lambda look: seen.append(look.at)))
        watch.start()
        wait_for(lambda: len(seen) >= 3)
        watch.close()


def test_a_watch_ends_with_its_topology_and_keeps_what_it_saw() -> None:
    running = il.LocalRuntime().launch(chain(lambda rows: rows))
    watch = Watch(running, interval=0.01)
    watch.start()
    running.stop()
    wait_for(lambda: watch.now()[0].status.state is il.State.STOPPED)
    assert report(watch)["verdict"]["summary"] == "It has been stopped."
    watch.close()


def test_the_graph_has_a_place_for_every_component_and_a_way_for_every_edge() -> None:
    topology = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10)).topology()
    drawn = graph(topology)
    assert [box["name"] for box in drawn["boxes"]] == [node.name for node in topology.nodes]
    assert {(edge["from"], edge["to"]) for edge in drawn["edges"]} == {
        (edge.producer, edge.consumer) for edge in topology.edges
    }
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= drawn["width"] for box in drawn["boxes"])
    assert all(box["y"] + box["height"] <= drawn["height"] for box in drawn["boxes"])


def test_sources_are_not_blamed_for_back_pressure() -> None:
    join = il.StreamJoin("R", "S", "R.x <= S.x", il.CountWindow(1000))
    with join.launch(il.LocalRuntime(edge_bytes=1 << 10)) as running:

        def send() -> None:
            for number in range(50):
                running.send("R", {"x": list(range(200))})
                if number < 45:  # S stays behind
                    running.send("S", {"x": list(range(200))})

        sending = threading.Thread(target=send)
        sending.start()
        wait_for(lambda: running.metrics().of("results")[0].blocked_seconds > 0.2)
        watch = Watch(running)
        watch.look()
        wait_for(lambda: running.metrics().of("results")[0].blocked_seconds > 0.5)
        watch.look()
        assert watch.verdict().bottleneck.startswith("Whoever reads 'results' is the bottleneck")
        assert read_to_the_end(running, sending) > 0


def test_state_is_shown_with_its_sizes_and_what_it_has_left(tmp_path: Path) -> None:
    join = il.StreamJoin("R", "S", "R.x = S.x", il.CountWindow(8), using=il.IndexJoin())
    with join.launch(il.LocalRuntime(state=tmp_path)) as running:
        for stream in "RS":
            running.send(stream, {"x": [1, 2]})
        running.finish()
        wait_for(lambda: running.metrics().of("results")[0].rows_in == 2)
        watch = Watch(running)
        watch.look()
        shown = report(watch)
        (worker,) = shown["workers"]
        assert shown["log_bytes"] == worker["log_bytes"] > 0
        assert shown["checkpoint_bytes"] == 0
        assert worker["free_state_bytes"] > 0
        point = watch.series()[-1]
        assert (point["window_rows"], point["window_fill"]) == (4.0, 0.25)
        assert point["log_bytes"] == shown["log_bytes"]
        assert (point["free_memory_bytes"] or 0) > 0
        assert (point["state_bytes"] or 0) > 0


def test_trouble_and_what_the_state_needs_are_in_the_verdict() -> None:
    with il.LocalRuntime().launch(chain(lambda rows: rows)) as running:
        seen = Watch(running).look()
    (worker,) = seen.status.workers
    known = worker.vitals
    assert known is not None

    def look(seconds: int, log_bytes: int, trouble: str = "") -> Look:
        vitals = replace(known, log_bytes=log_bytes, free_state=1 << 30)
        status = replace(
            seen.status, state=il.State.RUNNING, workers=(replace(worker, vitals=vitals),), trouble=trouble
        )
        return replace(seen, at=seen.at + seconds, status=status)

    looks = [look(seconds, seconds * (1 << 20)) for seconds in (0, 30, 60, 90)]
    verdict = judge(look(120, 120 << 20), looks[-1], {}, looks)
    assert verdict.outlook == f"At this rate, the state's disk space of {worker.node} is full in 17 minutes."
    assert verdict.health == "attention"
    waiting = judge(look(120, 0, "send() waits for the disk"), looks[-1], {})
    assert waiting.summary == "It runs, but: send() waits for the disk."


def test_late_rows_of_several_joins_are_added() -> None:
    def gate(task: int, rows: int) -> TaskMetrics:
        late = {"late": {"out of order": {"rows": rows, "samples": [{"offset": task}]}}}
        return TaskMetrics("gate", task, 0, 0, 0, 0, 0, 0, 0.0, 0, {}, details=late)

    topology = chain(lambda rows: rows)
    look = Look(0.0, topology, Metrics((gate(0, 2), gate(1, 3))), Status("chain", il.State.RUNNING, ()))
    assert look.late == {"out of order": {"rows": 5, "samples": [{"offset": 0}, {"offset": 1}]}}
    earlier = Look(-2.0, topology, Metrics((gate(0, 1),)), look.status)
    assert point(earlier, look)["late:out of order"] == 2.0
