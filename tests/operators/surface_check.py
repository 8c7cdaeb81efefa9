"""Every engine over the whole query surface, checked against the oracle: results, their order, and late rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from operators import ConfiguredIndex, Engine, HandshakeJoin, IndexJoin, PanJoin, ScaleJoin, SplitJoin, SPOJoin
from tests.operators.query.spelling import join_of
from tests.oracle import assert_ordered
from tests.oracle_terms import is_absent
from tests.surface import SurfaceCase
from topology import LocalRuntime, Runtime

MERGING = ConfiguredIndex("PIMTree", {"merge_ratio": 0.3, "insertion_depth": 1, "at_once": 0})
"""It merges at every other step, beside the join."""

ENGINES: dict[str, Callable[[int], Engine]] = {
    "SPOJoin": lambda cores: SPOJoin(elements=cores, merge_interval=4),
    "SPOJoin, decomposed": lambda cores: SPOJoin(elements=cores, mutable="decomposed", merge_interval=3),
    "ScaleJoin": lambda cores: ScaleJoin(threads=cores),
    "ScaleJoin, indexed": lambda cores: ScaleJoin(threads=cores, index="auto"),
    "SplitJoin": lambda cores: SplitJoin(cores=cores),
    "SplitJoin, indexed": lambda cores: SplitJoin(cores=cores, index="auto"),
    "PanJoin": lambda cores: PanJoin(workers=cores, subwindow=3),
    "IndexJoin": lambda cores: IndexJoin(MERGING, threads=cores),
    "IndexJoin, chosen": lambda cores: IndexJoin(threads=1, index="auto"),
    "IndexJoin, divided": lambda cores: IndexJoin(MERGING, threads=cores, partitions=1 << cores, rows_per_map=5),
    "HandshakeJoin": lambda cores: HandshakeJoin(cores=cores),
    "HandshakeJoin, original": lambda cores: HandshakeJoin(cores=cores, low_latency=False),
}
cores = st.sampled_from([1, 2, 3])
# Cases are small as drawn; making a failing one smaller takes minutes, each trial being a topology of its own.
sampled = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def check(case: SurfaceCase, engine: Engine | None, runtime: Runtime | None = None) -> None:
    """The results, their order, and every row that takes no part with its reason."""
    expected = case.expected()
    actual, late = join_of(case, engine or "auto").collect_with_late(case.inputs(), runtime or LocalRuntime())
    assert_ordered(case.ordering, actual, expected.table, expected.places)
    assert late_rows(late) == [
        (row.stream, row.source, row.offset, None if is_absent(row.time) else row.time, row.reason)
        for row in sorted(expected.late, key=lambda row: (row.stream, row.source, row.offset))
    ]


def late_rows(late: pa.Table) -> list[tuple[Any, ...]]:
    """(stream, source, offset, event time, reason) of each late row; each source's offsets must rise."""
    times = late["event_time"]
    if pa.types.is_temporal(times.type):
        times = times.cast(pa.int64())
    columns = [late["stream"], late["source"], late["offset"], times, late["reason"]]
    found = list(zip(*[column.to_pylist() for column in columns], strict=True))
    found = [(*row[:3], None if is_absent(row[3]) else row[3], row[4]) for row in found]
    by_source = sorted(found, key=lambda row: row[:2])  # a stable sort
    assert by_source == sorted(found, key=lambda row: row[:3])
    return by_source
