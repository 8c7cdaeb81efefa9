"""Joins of several streams go on from their state: results, numbers and order are those of a run without an end."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from operators import CountWindow, MultiJoin, TimeWindow
from tests.comparison import assert_same_result
from tests.operators.multiway.random_several import SeveralCase, random_case
from tests.topology.waiting import LONG
from topology import Handle, LocalRuntime, TopologyError

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

LIVES = 4


def check(seed: int, state: Path) -> None:
    case, chance = random_case(seed, most_rows=16), Random(seed)
    join, expected = case.join(sql=seed % 2 == 0), case.expected().table
    found: dict[int, dict[str, object]] = {}
    for life in range(LIVES):
        sources = {stream: list(tables) for stream, tables in case.sources.items()}
        with join.launch(LocalRuntime(state=state), sources=sources, name="several") as running:
            last = life == LIVES - 1
            send(case, running, chance, to_the_end=last)
            if last:
                running.finish()
            for first, batch in running.results("results", numbered=True, timeout=None if last else 0.02):
                for number, row in enumerate(batch.to_pylist(), first):
                    assert found.setdefault(number, row) == row, f"seed {seed}: result {number}"
                running.acknowledge(first + chance.randint(0, batch.num_rows) - 1, "results")
    assert sorted(found) == list(range(expected.num_rows)), f"seed {seed}"
    rows = [found[number] for number in sorted(found)]
    assert_same_result(pa.Table.from_pylist(rows, expected.schema) if rows else expected, expected)


def send(case: SeveralCase, running: Handle, chance: Random, to_the_end: bool) -> None:
    """Send the next rows of each source in small batches, sources in turn, some again."""
    names = [(stream, source) for stream, tables in case.sources.items() for source in tables]
    for stream, source in chance.sample(names, len(names)):
        table = case.sources[stream][source]
        known = running.next_offset(stream, source)
        end = table.num_rows if to_the_end else min(table.num_rows, known + chance.randint(0, 5))
        first = max(0, known - chance.randint(0, 2))
        while first < end or (to_the_end and not table.num_rows):
            count = chance.randint(1, 4)
            running.send(stream, table.slice(first, min(count, end - first)), source, offset=first)
            first += count
            if not table.num_rows:
                break


@pytest.mark.parametrize("seed", range(12))
def test_it_goes_on_from_its_state(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 2048)
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 200))
def test_many_go_on_from_their_state(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 512)
    check(seed, tmp_path)


WINDOW = 200
JOIN = MultiJoin(["a", "b", "c"], "a.k = b.k AND b.k = c.k", CountWindow(WINDOW), select=["a.k", "b.k", "c.k"])
SOURCES = {stream: [stream] for stream in "abc"}


def test_what_no_result_needs_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row has a match that is the oldest but one in its window: a new life must not lack any of these."""
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 256)
    size, lives, at_once = 1_200, 3, 16
    rows = pa.table({"k": [i % (WINDOW - 1) for i in range(size)]})
    right = JOIN.collect(dict.fromkeys("abc", rows)).combine_chunks()
    end = 0
    for life in range(lives):
        with JOIN.launch(LocalRuntime(state=tmp_path), sources=SOURCES) as running:
            end_of_life = (life + 1) * size // lives
            for first in range(life * size // lives, end_of_life, at_once):
                for stream in "abc":
                    running.send(stream, rows.slice(first, min(at_once, end_of_life - first)), stream, offset=first)
            if life == lives - 1:
                running.finish()
            # the last rows of a life may wait for those that follow
            certain = JOIN.collect(dict.fromkeys("abc", rows.slice(0, end_of_life - 1))).num_rows
            for first, batch in running.results("results", numbered=True, timeout=LONG):
                assert first == end
                end += batch.num_rows
                assert pa.Table.from_batches([batch]).equals(right.slice(first, batch.num_rows).combine_chunks())
                running.acknowledge(end - 1, "results")
                if end >= certain and life < lives - 1:
                    break
    assert end == right.num_rows
    assert not list(tmp_path.rglob("segment-000000000001-*")), "the log was not trimmed"


def test_another_join_of_several_goes_on_from_the_same_rows(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path)
    one = pa.table({"k": [1]})
    with JOIN.launch(runtime, sources=SOURCES, name="same") as running:
        running.send("a", one, "a")
        running.send("b", one, "b")
    other = MultiJoin(["a", "b", "c"], "a.k = b.k AND b.k <= c.k", CountWindow(10), select=["c.k"])
    with pytest.raises(TopologyError, match="belongs to another topology"):
        other.launch(runtime, name="same")
    with other.launch(LocalRuntime(state=tmp_path, new_query=True), name="same") as running:
        running.send("c", pa.table({"k": [5]}), "c")
        running.finish()
        assert [batch.to_pydict() for batch in running.results("results")] == [{"c.k": [5]}]
    timed = MultiJoin(["a", "b", "c"], "a.k = b.k AND b.k = c.k", TimeWindow(5), event_time="k")
    with pytest.raises(TopologyError, match=r"event time|order"):
        timed.launch(LocalRuntime(state=tmp_path, new_query=True), name="same")
