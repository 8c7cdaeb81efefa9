"""Results for `async for`: the same rows, and a loop that goes on while nothing comes."""

import asyncio

import pyarrow as pa
import pytest

from topology import LocalRuntime, Topology, TopologyBuilder


def straight() -> Topology:
    builder = TopologyBuilder("straight")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    return builder.build()


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def test_all_rows_come_in_order_and_the_loop_goes_on_meanwhile() -> None:
    async def main() -> tuple[list[int], int]:
        found: list[int] = []
        turns = 0

        async def feed() -> None:
            nonlocal turns
            for value in range(5):
                running.send("in", numbers(value))
                while len(found) <= value:  # the reader waits for rows in a thread, not in the loop
                    turns += 1
                    await asyncio.sleep(0)
            running.finish()

        feeding = asyncio.create_task(feed())
        async for rows in running.results_async():
            found += rows.column("n").to_pylist()
        await feeding
        return found, turns

    with LocalRuntime().launch(straight()) as running:
        found, turns = asyncio.run(main())
    assert found == [0, 1, 2, 3, 4]
    assert turns > 0


def test_it_ends_at_a_timeout_and_can_be_left_while_it_waits() -> None:
    async def main() -> list[pa.RecordBatch]:
        waiting = asyncio.ensure_future(anext(running.results_async()))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return [rows async for rows in running.results_async(timeout=0.05)]

    with LocalRuntime().launch(straight()) as running:
        assert asyncio.run(main()) == []
