"""Joins of sources out of order: the results of the rows in order, and every other row on the output `late`."""

from __future__ import annotations

import logging
import random
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from operators import CountWindow, JoinError, SPOJoin, StreamJoin
from tests.operators.intake.out_of_order import BOUND, JOIN, NAMES, SOURCES, in_order, late_rows, reported
from tests.operators.seeded_run import run_seeded
from tests.operators.sent_readings import content, send
from topology import FlightClient, LocalRuntime, OutOfOrderError, SchemaError


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    """The results of the rows that take part, given in order to a join that knows no bound."""
    table = replace(JOIN, out_of_order=None).collect(in_order(SOURCES, BOUND))
    assert table.num_rows > 500
    return table


def test_results_are_those_of_the_rows_in_order_and_all_others_are_reported(expected: pa.Table) -> None:
    results, late = JOIN.collect_with_late(SOURCES)
    assert content(results) == content(expected)
    assert late.schema.names == ["stream", "source", "offset", "event_time", "reason"]
    assert late.schema.field("event_time").type == pa.int64()
    assert reported(late) == late_rows(SOURCES, BOUND)
    assert {"out of order", "no event time"} == set(late["reason"].to_pylist())


@pytest.mark.parametrize("seed", range(4))
def test_no_cut_and_no_interleaving_changes_a_byte(seed: int, expected: pa.Table) -> None:
    chance = random.Random(seed)
    cut: dict[str, dict[str, list[pa.RecordBatch]]] = {}
    for stream, tables in SOURCES.items():
        for name, table in tables.items():
            whole, at = table.combine_chunks().to_batches()[0], 0
            pieces = cut.setdefault(stream, {}).setdefault(name, [])
            while at < whole.num_rows:
                pieces.append(whole.slice(at, chance.choice([1, 7, 60, 400])))
                at += pieces[-1].num_rows
    late: list[pa.RecordBatch] = []
    join = replace(JOIN, using=SPOJoin(elements=2, merge_interval=90), step_rows=chance.choice([13, 100]))
    batches = run_seeded(join.topology(), cut, seed, late=late)
    assert content(pa.Table.from_batches(batches).cast(expected.schema)) == content(expected)
    assert reported(pa.Table.from_batches(late)) == late_rows(SOURCES, BOUND)


@pytest.mark.parametrize("seed", range(2))
def test_no_timing_of_real_threads_changes_a_byte(seed: int, expected: pa.Table) -> None:
    with JOIN.launch(LocalRuntime(edge_bytes=20_000), sources=NAMES) as running:
        threads = [
            threading.Thread(target=send, args=(running, stream, name, table, random.Random(f"{seed}{name}")))
            for stream, tables in SOURCES.items()
            for name, table in tables.items()
        ]
        for thread in threads:
            thread.start()

        def finish() -> None:
            for thread in threads:
                thread.join(60)
            running.finish()

        finisher = threading.Thread(target=finish)
        finisher.start()
        results = pa.Table.from_batches(list(running.results()), running.result_schema())
        finisher.join(60)
        late = pa.Table.from_batches(running.late(), running.late_schema())
    assert content(results) == content(expected)
    assert reported(late) == late_rows(SOURCES, BOUND)


def small(**options: Any) -> StreamJoin:
    given: dict[str, Any] = {"event_time": "ts", "select": ["R.id", "S.id"]} | options
    return StreamJoin("R", "S", "R.id <= S.id", CountWindow(10), **given)


def rows(*times: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"id": pa.array(range(len(times)), pa.int64()), "ts": pa.array(times, kind or pa.int64())})


def test_unread_late_rows_block_no_one() -> None:
    count = 200_000
    backwards = rows(count, *range(count))  # all but the first and the last are late
    with small(out_of_order=1).launch(LocalRuntime(edge_bytes=10_000), sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", backwards)
        running.send("S", rows(count))
        running.finish()
        assert sum(batch.num_rows for batch in running.results()) > 0
        assert running.metrics().total("late_out_of_order") == count - 1
        assert sum(batch.num_rows for batch in running.late()) == count - 1


def test_late_rows_are_read_while_the_data_is_still_moving() -> None:
    with small(out_of_order=2).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", rows(10, 9, 7, None))
        found = next(running.late(timeout=30))
        assert found.column("offset").to_pylist() == [2, 3]
        assert list(running.late(timeout=0.01)) == [found], "it was not acknowledged"
        assert list(running.late(timeout=0.01)) == []


def test_other_processes_read_late_rows_over_flight() -> None:
    with small(out_of_order=2).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        with FlightClient(running.endpoint("R")) as client:
            client.send("R", "R", rows(10, 9, 7))
        running.send("S", rows(5))
        running.finish()
        assert list(running.results())
        with FlightClient(running.endpoint("late")) as reader:
            late = pa.Table.from_batches(reader.results("late"))
    assert reported(late) == {("R", "R"): [(2, 7, "out of order")]}


def test_collect_says_in_the_log_what_it_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "interlace"):
        small(out_of_order=2).collect({"R": rows(10, 7, None, None), "S": rows(9)})
    assert "3 rows take no part in the join: 2 no event time, 1 out of order" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "interlace"):
        small(out_of_order=2).collect({"R": rows(10, 8), "S": rows(9)})
        small(out_of_order=2).collect_with_late({"R": rows(10, 7), "S": rows(9)})
    assert caplog.text == ""


def test_nothing_late_gives_an_empty_table_with_its_columns() -> None:
    _, late = small().collect_with_late({"R": rows(1, 2), "S": rows(3)})
    assert late.num_rows == 0
    assert late.schema.field("event_time").type == pa.int64()


def test_event_times_keep_their_type_on_the_late_output() -> None:
    kind = pa.timestamp("ms", "UTC")
    _, late = small(out_of_order="2 s").collect_with_late({"R": rows(9000, 6999, kind=kind), "S": rows(9, kind=kind)})
    assert late.schema.field("event_time").type == kind
    assert late["event_time"].cast(pa.int64()).to_pylist() == [6999]


def test_each_stream_may_have_its_own_bound() -> None:
    join = small(out_of_order={"R": 5})
    _, late = join.collect_with_late({"R": rows(10, 5, 4), "S": rows(1, 2)})
    assert reported(late) == {("R", "R"): [(2, 4, "out of order")]}
    with pytest.raises(OutOfOrderError, match="out_of_order="):
        join.collect({"R": rows(10, 5), "S": rows(2, 1)})


def test_a_source_that_joins_too_late_is_reported_and_one_that_was_opened_is_not() -> None:
    for opened in (True, False):
        with small().launch(sources={"R": ["R"], "S": ["S", *(["more"] if opened else [])]}) as running:
            running.send("R", rows(1, 5, 9))
            running.send("S", rows(2, 8))
            if not opened:
                next(running.results(timeout=30))  # rows up to 8 have been put in order
            running.send("S", rows(3, 8, 9), source="more")
            running.finish()
            list(running.results())
            late = pa.Table.from_batches(running.late(), running.late_schema())
        reasons = [(offset, reason) for each in reported(late).values() for offset, _, reason in each]
        assert reasons == ([] if opened else [(0, "source joined too late")])


def test_a_source_that_has_ended_holds_no_other_back() -> None:
    with small(out_of_order=100).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", rows(1, 5))
        running.send("S", rows(2, 8))
        assert list(running.results(timeout=0.2)) == []
        running.finish("S", "S")
        running.finish("R", "R")
        assert next(running.results(timeout=30)).num_rows > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out_of_order": -1}, "out_of_order of stream 'R' must not be negative: -1"),
        ({"out_of_order": "soon"}, "out_of_order of stream 'R': 'soon' is not a length of time"),
        ({"out_of_order": {"T": 1}}, "out_of_order names 'T', which is not a stream of this join"),
        ({"out_of_order": 1, "event_time": None}, "needs event_time="),
        ({"out_of_order": {"S": 1}, "event_time": None}, "stream 'S' has no event_time="),
        ({"idle_after": 0}, "idle_after must be more than 0 seconds, not 0"),
        ({"idle_after": "later"}, "idle_after: 'later' is not a length of time"),
        ({"idle_after": True}, "idle_after: True is not a length of time"),
        ({"streams": {"R": "late"}}, "cannot be called 'late', which is one of its outputs"),
        ({"streams": {"R": "results"}}, "cannot be called 'results'"),
    ],
)
def test_wrong_settings_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        small(**options)


def test_a_bound_needs_a_column_of_its_kind() -> None:
    with pytest.raises(SchemaError, match=r"stream 'R': out_of_order: .*write it as a number in that unit"):
        small(out_of_order=timedelta(seconds=1)).collect({"R": rows(1), "S": rows(1)})


def test_without_a_bound_a_row_that_goes_backwards_is_refused_with_the_remedy() -> None:
    for bound in (None, 0, "0 s"):
        with pytest.raises(OutOfOrderError, match=r"goes backwards at row 1 .*out_of_order= of a join"):
            small(out_of_order=bound).collect({"R": rows(2, 1), "S": rows(1)})
