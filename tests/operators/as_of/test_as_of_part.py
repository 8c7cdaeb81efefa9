"""As-of joins as parts of topologies: results have event times, and watermarks that hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import JoinError, StreamJoin
from tests.comparison import assert_same_result
from tests.operators.as_of.as_of_cases import cases, expected, join_of
from tests.operators.part_check import as_table, playback, run
from topology import DEFAULT_STREAM, Batch, Bolt, Emit, Origin, Task, TaskContext, Time, TopologyBuilder


@dataclass(frozen=True)
class Watched(Bolt):
    """Passes results on, with the event time that was promised before each batch."""

    def build(self, context: TaskContext) -> Task:
        return WatchedTask()


class WatchedTask(Task):
    def __init__(self) -> None:
        self._promised: Time | None = None

    def on_event_time(self, time: Time) -> Iterable[Emit]:
        self._promised = time
        return ()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        times = batch.rows["event_time"].cast(pa.float64() if self._is_float(batch) else pa.int64()).to_pylist()
        late = [self._promised is not None and time < self._promised for time in times]
        yield Emit(Batch(DEFAULT_STREAM, batch.rows.append_column("late", pa.array(late, pa.bool_()))))

    @staticmethod
    def _is_float(batch: Batch) -> bool:
        return bool(pa.types.is_floating(batch.rows["event_time"].type))


@settings(max_examples=60)
@given(cases(), st.sampled_from(["later", "L"]))
def test_results_follow_the_law_and_no_watermark_is_broken(case: dict[str, Any], event_time: str) -> None:
    case["sources"] = {
        stream: {f"{stream} {name}": table for name, table in tables.items()}
        for stream, tables in case["sources"].items()
    }
    builder = TopologyBuilder("prices")
    for tables in case["sources"].values():
        for name, table in tables.items():
            builder.spout(name, playback(table, rows=3))
    fed: Any = {stream: list(tables) for stream, tables in case["sources"].items()}
    builder.join("chosen", join_of(case), inputs=fed, event_time=event_time)
    builder.bolt("watched", Watched()).global_grouping("chosen")
    builder.sink().global_grouping("watched")
    wanted = expected(case)
    found = as_table(run(builder.build())["results"], wanted.schema)
    assert_same_result(found.select(wanted.column_names), wanted)
    if found.num_rows:
        assert not any(found["late"].to_pylist())
        times = found["event_time"].to_pylist()
        if event_time == "later":
            assert times == sorted(times)
        else:
            left = pa.concat_tables(list(case["sources"]["L"].values()))
            assert set(times) <= set(left["ts"].to_pylist())


def test_the_time_of_the_right_row_is_refused() -> None:
    builder = TopologyBuilder("prices")
    builder.input("l")
    builder.input("r")
    join = StreamJoin("L", "R", "TRUE", kind="asof", event_time="ts")
    with pytest.raises(JoinError, match="choose a row of 'R' again and again: use 'later' or 'L'"):
        builder.join("chosen", join, inputs={"L": ("l", DEFAULT_STREAM), "R": ("r", DEFAULT_STREAM)}, event_time="R")
