"""The benchmark of CellJoin, which SplitJoin and ScaleJoin use: two streams, two bands, one pair in 250,000."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.papers import joins
from benchmarks.scale_band import r_rows, s_rows
from operators import CountWindow, Engine, Ordering, StreamJoin, TimeWindow

SPACE = 10_000
"""Attributes are uniform in 1..10,000."""

DATA = "Data: generated, the two bands of CellJoin (one pair in 250,000), as in the paper."
VIRTUAL = "A processor for each element: processor time is measured, and the busiest element decides."


def cell_join(
    engine: Engine, window: CountWindow | TimeWindow, ordering: Ordering = "outer", near: int = 10, step: int = 512
) -> StreamJoin:
    """Rows match when both attributes are at most `near` apart."""
    return StreamJoin(
        "R",
        "S",
        f"R.x BETWEEN S.a - {near} AND S.a + {near} AND R.y BETWEEN S.b - {near} AND S.b + {near}",
        window,
        select=["R.id", "S.id"],
        event_time="block" if isinstance(window, CountWindow) else "ts",
        using=engine,
        ordering=ordering,
        step_rows=step,
    )


def rows(count: int) -> tuple[pa.Table, pa.Table]:
    """Rows of R and of S with an `id` and the moment `ts`: one of each stream per moment."""
    times = np.arange(count)
    made = (r_rows(count, times, 1), s_rows(count, times, 2))
    left, right = (pa.table({"id": times, **dict(zip(each.schema.names, each.columns, strict=True))}) for each in made)
    return left, right


def counted_feed(window: int, measured: int, batch: int) -> joins.Feed:
    """Batches of R and S in turns after `window` rows of each."""
    filling = -(-window // batch) * batch
    return joins.alternating(rows(filling + measured), batch, window)


def cell_run(
    engine: Engine, window: int, measured: int, batch: int, near: int = 10, ordering: Ordering = "outer"
) -> joins.Run:
    """Windows of so many rows, a processor for each element."""
    join = cell_join(engine, CountWindow(window), ordering, near, 2 * batch)
    return joins.virtual(join, counted_feed(window, measured, batch))


def timed_run(engine: Engine, window: int, measured: int, batch: int) -> joins.Run:
    """The same rows by time: windows of so many moments, of one row each."""
    feed = counted_feed(window, measured, batch)
    join = cell_join(engine, TimeWindow(window), step=2 * batch)
    return joins.virtual(join, feed)


def comparisons(run: joins.Run, window: int, element: str) -> float:
    """Pairs of rows compared per second, at the rate that the busiest of the elements with this name allows."""
    seconds = max(seconds for name, seconds in run.busy.items() if name.startswith(element))
    tuples = run.rate * max(run.busy.values())
    return tuples / seconds * window
