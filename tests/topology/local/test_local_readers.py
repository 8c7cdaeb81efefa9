"""Readers of results in this process: numbers, acknowledgements, leaving, taking over, stopping."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tests.topology.local.pipelines import numbers, pipeline
from tests.topology.waiting import LONG, SHORT, done_within
from topology import (
    AcknowledgedError,
    InputError,
    LocalRuntime,
    SinkHasReaderError,
    StoppedError,
    TakenOverError,
    TopologyError,
)


def column(rows: pa.RecordBatch) -> list[int]:
    found: list[int] = rows.column("n").to_pylist()
    return found


def test_a_loop_that_fails_gets_its_batch_again() -> None:
    with LocalRuntime().launch(pipeline()) as running:
        for value in range(5):
            running.send("in", numbers(value))
        running.finish()
        found: list[int] = []
        with pytest.raises(ZeroDivisionError):
            for rows in running.results():
                if column(rows) == [4]:
                    found.append(1 // 0)
                found += column(rows)
        for rows in running.results():
            found += column(rows)
        assert found == [0, 2, 4, 6, 8]
        assert list(running.results()) == []


def test_nothing_is_acknowledged_by_itself_where_rows_have_numbers() -> None:
    with LocalRuntime().launch(pipeline()) as running:
        running.send("in", numbers(1, 2, 3))
        running.send("in", numbers(4))
        running.finish()
        for _ in range(2):
            assert [(first, column(rows)) for first, rows in running.results(numbered=True)] == [
                (0, [2, 4, 6]),
                (3, [8]),
            ]
        assert [column(rows) for rows in running.results(after=1)] == [[6], [8]]
        running.acknowledge(1)
        assert [(first, column(rows)) for first, rows in running.results(numbered=True)] == [(2, [6]), (3, [8])]
        with pytest.raises(AcknowledgedError, match=r"up to number 1 .* are gone.* first that is kept is 2: .*after=1"):
            running.results(after=0)
        assert [column(rows) for rows in running.results()] == [[6], [8]]
        assert list(running.results()) == []


@pytest.mark.parametrize("number", [-2, 1.5, "3", True, None])
def test_what_is_no_number_is_refused(number: object) -> None:
    with LocalRuntime().launch(pipeline()) as running:
        with pytest.raises(InputError, match="must be a whole number of at least -1"):
            running.acknowledge(number)  # type: ignore[arg-type]
        if number is not None:
            with pytest.raises(InputError, match="after must be a whole number"):
                running.results(after=number)  # type: ignore[call-overload]
        with pytest.raises(InputError, match="none has been given out"):
            running.acknowledge(0)
        with pytest.raises(TopologyError, match="name the sink to read"):
            running.acknowledge(0, "nobody")


def test_one_reader_at_a_time_and_the_next_can_take_over() -> None:
    with LocalRuntime().launch(pipeline()) as running, ThreadPoolExecutor(1) as pool:
        first = running.results()
        waiting = pool.submit(next, first)
        assert not done_within(waiting.done, SHORT)
        with pytest.raises(SinkHasReaderError, match="'results' has a reader already"):
            running.results()
        second = running.results(take_over=True)
        assert isinstance(waiting.exception(LONG), TakenOverError)
        running.send("in", numbers(1))
        assert column(next(second)) == [2]
        second.close()
        second.close()
        assert list(second) == []
        running.finish()
        assert [column(rows) for rows in running.results()] == [[2]]


def test_closing_from_another_thread_ends_the_wait_without_taking_rows() -> None:
    with LocalRuntime().launch(pipeline()) as running, ThreadPoolExecutor(1) as pool:
        reader = running.results()
        waiting = pool.submit(list, reader)
        assert not done_within(waiting.done, SHORT)
        reader.close()
        assert waiting.result(LONG) == []
        running.send("in", numbers(1))
        assert column(next(running.results())) == [2]


def test_stop_raises_in_a_reader_before_the_end_and_not_after_it() -> None:
    running = LocalRuntime().launch(pipeline())
    running.send("in", numbers(1))
    reader = running.results()
    assert column(next(reader)) == [2]
    threading.Timer(SHORT, running.stop).start()
    with pytest.raises(StoppedError, match="stopped before all results had been read"):
        next(reader)
    complete = LocalRuntime().launch(pipeline())
    complete.send("in", numbers(1))
    complete.finish()
    reader = complete.results()
    assert column(next(reader)) == [2]
    assert list(reader) == []
    complete.stop()
    assert list(complete.results()) == []


def test_async_readers_take_the_same_arguments() -> None:
    async def main() -> list[tuple[int, list[int]]]:
        return [(first, column(rows)) async for first, rows in running.results_async(after=0, numbered=True)]

    with LocalRuntime().launch(pipeline()) as running:
        running.send("in", numbers(1, 2, 3))
        running.finish()
        assert [first for first, _ in running.results(numbered=True)] == [0]
        assert asyncio.run(main()) == [(1, [4, 6])]
