"""Micro-batches enter once over the lives of a topology, whatever died between staging, commit and result."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from operators import RunningJoin, StreamJoin, TimeWindow
from tests.operators.intake.out_of_order import in_order
from topology import FlightClient, InputError, LocalRuntime
from topology.journal import opening

DELAY = 30
Delay = tuple[str, int] | None
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64())])
JOIN = StreamJoin(
    "R", "S", "abs(R.x - S.x) <= 2", TimeWindow(25), select=["R.id", "S.id"], event_time="ts", out_of_order=DELAY
)
ORDERED = replace(JOIN, out_of_order=None)
"""The same for sources that are in order, or declare their own delay."""


def micro_batches(choose: random.Random, count: int) -> list[list[dict[str, int]]]:
    return [
        [
            {"id": 100 * number + row, "ts": 20 * number + choose.randrange(DELAY), "x": choose.randrange(20)}
            for row in range(choose.randrange(12))
        ]
        for number in range(count)
    ]


def table(rows: list[dict[str, int]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def stage(
    choose: random.Random, client: FlightClient, stream: str, number: int, rows: list[dict[str, int]], delay: Delay
) -> dict[str, int]:
    """Stage a micro-batch, divided at random; return the attempts that count."""
    attempts = {}
    client.open_feed(stream, "feed", "query", delays=None if delay is None else dict([delay]))
    parts = choose.randrange(1, 4)
    mixed = choose.sample(rows, len(rows))
    for part in range(parts):
        attempt = f"{part}.{choose.random()}"
        attempts[attempt] = len(mixed[part::parts])
        client.stage_micro_batch(stream, "feed", "query", number, attempt, table(mixed[part::parts]))
    return attempts


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_results_over_many_lives_are_those_of_one(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delay is that of the stream, or every other time that of the query."""
    monkeypatch.setattr(opening, "SEGMENT_BYTES", 3000)
    choose = random.Random(seed)
    join, delay = (ORDERED, ("ts", DELAY)) if seed % 2 else (JOIN, None)
    content = {stream: micro_batches(choose, 12) for stream in "RS"}
    committed = dict.fromkeys("RS", -1)
    got: dict[int, tuple[int, int]] = {}
    while min(committed.values()) < 11:
        with join.launch(LocalRuntime(state=tmp_path), sources={"R": ["feed"], "S": ["feed"]}) as running:
            for _ in range(choose.randrange(1, 9)):
                stream = min("RS", key=lambda each: (committed[each], choose.random()))
                number = committed[stream] + 1 if committed[stream] < 11 else 11
                if choose.random() < 0.2:
                    number = max(0, number - 1)  # the query does a committed one again
                with FlightClient(running.endpoint(stream)) as client:
                    attempts = stage(choose, client, stream, number, content[stream][number], delay)
                    if choose.random() < 0.15:
                        break  # all dies between staging and commit
                    client.commit_micro_batch(stream, "feed", "query", number, attempts)
                committed[stream] = max(committed[stream], number)
                if choose.random() < 0.5:
                    read(running, got, acknowledge=choose.random() < 0.8)
    with join.launch(LocalRuntime(state=tmp_path)) as running:
        for stream in "RS":
            with FlightClient(running.endpoint(stream)) as client:
                assert client.open_feed(stream, "feed", "query", delays=None if delay is None else dict([delay])) == 11
        running.finish()
        read(running, got)
        assert running.metrics().total("late") == 0
    sources = {
        stream: {
            "feed": pa.concat_tables([table(sorted(rows, key=lambda row: (row["ts"], row["id"]))) for rows in each])
        }
        for stream, each in content.items()
    }
    expected = JOIN.collect(in_order(sources, DELAY))
    assert [got[number] for number in sorted(got)] == list(zip(*expected.to_pydict().values(), strict=True))
    assert list(got) == sorted(got) == list(range(expected.num_rows))


def read(running: RunningJoin, got: dict[int, tuple[int, int]], acknowledge: bool = True) -> None:
    for first, batch in running.results(numbered=True, timeout=0.05):
        rows = list(zip(*batch.to_pydict().values(), strict=True))
        for number, row in enumerate(rows, first):
            assert got.setdefault(number, row) == row
        if acknowledge:
            running.acknowledge(first + batch.num_rows - 1)


def test_a_query_that_was_replaced_stays_out_in_the_next_life(tmp_path: Path) -> None:
    with JOIN.launch(LocalRuntime(state=tmp_path)) as running, FlightClient(running.endpoint("R")) as client:
        client.open_feed("R", "feed", "first")
        client.stage_micro_batch("R", "feed", "first", 0, "a", table([{"id": 1, "ts": 1, "x": 1}]))
        client.commit_micro_batch("R", "feed", "first", 0, {"a": 1})
        client.stage_micro_batch("R", "feed", "first", 1, "a", table([{"id": 2, "ts": 2, "x": 1}]))
        assert client.open_feed("R", "feed", "second", take_over=True) == -1
    with JOIN.launch(LocalRuntime(state=tmp_path)) as running, FlightClient(running.endpoint("R")) as client:
        with pytest.raises(InputError, match="query second has taken over from first, which cannot come back"):
            client.open_feed("R", "feed", "first", take_over=True)
        with pytest.raises(InputError, match="because 0 have arrived"):  # what the first query staged is void
            client.commit_micro_batch("R", "feed", "second", 1, {"a": 1})
        assert running.next_offset("R", "feed") == 1
