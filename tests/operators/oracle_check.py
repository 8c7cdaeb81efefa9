"""Joins of generated cases, checked against the oracle."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

from operators import CountWindow, Engine, SPOJoin, StreamJoin, TimeWindow, UnboundedWindow
from tests.oracle import Count, Time, Window, assert_same_result
from tests.strategies import JoinCase
from topology import Runtime


def window_of(window: Window) -> CountWindow | TimeWindow | UnboundedWindow:
    match window:
        case Count(size, slide, per_key):
            return CountWindow(size, slide, per_key)
        case Time(size, slide):
            return TimeWindow(size, slide)
    return UnboundedWindow()


def join_of(case: JoinCase, engine: Engine, **options: object) -> StreamJoin:
    left, right = case.windows
    return StreamJoin(
        left=case.left,
        right=case.right,
        on=case.on,
        window=(window_of(left), window_of(right)),
        select=case.select,
        event_time=case.event_time,
        using=engine,
        streams=case.streams,
        **options,  # type: ignore[arg-type]
    )


def check(case: JoinCase, engine: Engine, runtime: Runtime, step_rows: int) -> None:
    actual = join_of(case, engine, step_rows=step_rows).collect(inputs_of(case), runtime)
    assert_same_result(actual, case.expected().table)


def inputs_of(case: JoinCase) -> dict[str, dict[str, pa.Table | list[pa.RecordBatch]]]:
    """Batches as they were cut; a table where there is no batch that would carry the schema."""
    return {
        stream: {name: batches or case.sources[stream][name] for name, batches in sources.items()}
        for stream, sources in case.batches().items()
    }


@st.composite
def engines(draw: st.DrawFn) -> SPOJoin:
    """Tiny merge intervals, so that segments are merged, handed over and expired within a few rows."""
    logical_elements = draw(st.none() | st.integers(1, 3))
    return SPOJoin(
        elements=draw(st.integers(1, 4)),
        mutable="fused" if logical_elements is None else "decomposed",
        logical_elements=logical_elements,
        permutations=draw(st.integers(1, 2)),
        merge_interval=draw(st.none() | st.integers(1, 8)),
    )
