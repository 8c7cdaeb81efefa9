"""Another query on the state of one that ran before: its windows are full, its results are a new series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from operators import CountWindow, IndexJoin, JoinError, RunningJoin, StreamJoin, TimeWindow
from topology import LocalRuntime, TopologyError

ROWS, BEFORE = 3_000, 1_700
SOURCES = {"R": ["R-0"], "S": ["S-0"]}
FIRST = StreamJoin(
    "R", "S", "abs(R.x - S.x) <= 3", CountWindow(400), select=["R.x", "S.x"], retain=["R.y"], event_time="t"
)
TABLE = pa.table(
    {"x": [(i * 7919) % 500 for i in range(ROWS)], "y": [i % 7 for i in range(ROWS)], "t": list(range(ROWS))}
)


def run_first(state: Path, join: StreamJoin = FIRST) -> None:
    """Send the first rows to a query, and read some of its results."""
    with join.launch(LocalRuntime(state=state), sources=SOURCES, name="q") as running:
        send(running, 0, BEFORE)
        for number, batch in running.results(numbered=True, timeout=1):
            running.acknowledge(number + batch.num_rows - 1)


def send(running: RunningJoin, first: int, end: int) -> None:
    for start in range(first, end, 100):
        for stream in "RS":
            running.send(stream, TABLE.slice(start, min(100, end - start)), source=f"{stream}-0")


def series(state: Path, join: StreamJoin) -> pa.Table:
    """The results of a new query on this state, with all rows; it is launched twice, as after a kill in between."""
    runtime = LocalRuntime(state=state, new_query=True)
    taken = 0
    with join.launch(runtime, sources=SOURCES, name="q") as running:
        send(running, BEFORE, BEFORE + 600)
        first, batch = next(running.results(numbered=True))
        assert first == 0
        taken = batch.num_rows // 2
        kept = batch.slice(0, taken)
        running.acknowledge(taken - 1)
    with join.launch(runtime, sources=SOURCES, name="q") as running:
        assert running.next_offset("R", "R-0") == BEFORE + 600
        send(running, BEFORE + 600, ROWS)
        running.finish()
        found = list(running.results(numbered=True))
    assert found[0][0] == taken
    return pa.Table.from_batches([kept, *(batch for _, batch in found)]).combine_chunks()


def results(join: StreamJoin, rows: int = ROWS) -> pa.Table:
    table = TABLE.slice(0, rows)
    return join.collect({"R": {"R-0": table}, "S": {"S-0": table}}).combine_chunks()


@pytest.mark.parametrize(
    "join",
    [
        replace(FIRST, on="abs(R.x - S.x) <= 1"),
        replace(FIRST, window=CountWindow(50), select=["R.y", "S.t"]),
        replace(FIRST, on="R.y < S.y AND abs(R.x - S.x) <= 20", window=TimeWindow(200), using=IndexJoin(threads=1)),
        replace(FIRST, kind="count"),
    ],
    ids=["narrower", "other window and columns", "other condition", "other kind"],
)
def test_a_new_query_begins_with_full_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, join: StreamJoin
) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 8192)  # so that the first query forgets rows
    run_first(tmp_path)
    # The last rows wait at the gate until a later one comes: the source that is behind may still send an equal time.
    passed = results(join, BEFORE).num_rows
    right = results(join)
    found = series(tmp_path, join)
    assert right.num_rows - passed <= found.num_rows < right.num_rows
    assert found.equals(right.slice(right.num_rows - found.num_rows))


def test_rows_without_a_pair_are_known_to_a_new_outer_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 4096)
    run_first(tmp_path, replace(FIRST, kind="left"))
    join = replace(FIRST, kind="left", on="abs(R.x - S.x) <= 0", window=CountWindow(100))
    right, found = results(join), series(tmp_path, join)
    assert found.num_rows < right.num_rows
    assert found.equals(right.slice(right.num_rows - found.num_rows))


def test_it_must_be_asked_for(tmp_path: Path) -> None:
    run_first(tmp_path)
    with pytest.raises(TopologyError, match=r"belongs to another topology.*new_query=True"):
        replace(FIRST, kind="left").launch(LocalRuntime(state=tmp_path), name="q")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event_time": None}, "same streams, event times"),
        ({"out_of_order": 5}, "same streams, event times"),
        ({"on": "R.z < S.x"}, r"column 'z', which the join needs, is missing.*retain="),
        ({"on": "upper(R.x) = S.x"}, "do not fit the new query"),
        ({"window": CountWindow(5_000)}, "need rows that the journal no longer holds"),
        ({"window": TimeWindow(5_000)}, "need rows that the journal no longer holds"),
    ],
)
def test_what_a_new_query_may_not_change_is_refused_and_the_old_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], message: str
) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 4096)
    run_first(tmp_path)
    with pytest.raises(TopologyError, match=message):
        replace(FIRST, **change).launch(LocalRuntime(state=tmp_path, new_query=True), name="q")  # type: ignore[arg-type]
    with FIRST.launch(LocalRuntime(state=tmp_path), sources=SOURCES, name="q") as running:
        assert running.next_offset("R", "R-0") == BEFORE


def test_a_state_that_has_forgotten_nothing_fills_larger_windows(tmp_path: Path) -> None:
    run_first(tmp_path)
    join = replace(FIRST, window=CountWindow(5_000))
    right, found = results(join), series(tmp_path, join)
    assert found.equals(right.slice(right.num_rows - found.num_rows))


def test_retained_columns_must_be_sent_and_are_needed(tmp_path: Path) -> None:
    assert "y" in FIRST.needed_columns("R", TABLE.schema)
    assert "y" not in FIRST.needed_columns("S", TABLE.schema)
    with FIRST.launch(LocalRuntime()) as running, pytest.raises(ValueError, match="column 'y'"):
        running.send("R", TABLE.select(["x", "t"]))
    for wrong in ("R.y", ["y"], [1], ["Q.y"]):
        with pytest.raises(JoinError, match="retain"):
            replace(FIRST, retain=wrong)  # type: ignore[arg-type]
