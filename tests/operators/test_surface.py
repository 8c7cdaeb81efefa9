"""The whole query surface against the oracle: predicates x types x windows x kinds x orders x engines, sampled.

What is drawn is printed when a test fails, with hypothesis' own blob to replay it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from operators import Engine, HandshakeJoin, IndexJoin, PanJoin, ScaleJoin, SplitJoin, SPOJoin
from tests.key_families import FAMILIES, Family
from tests.operators.query.spelling import join_of
from tests.oracle import assert_ordered
from tests.oracle_terms import is_absent
from tests.surface import SurfaceCase, surface_cases
from topology import LocalRuntime, RayRuntime, Runtime

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

ENGINES: dict[str, Callable[[int], Engine]] = {
    "SPOJoin": lambda cores: SPOJoin(elements=cores, merge_interval=4),
    "SPOJoin, decomposed": lambda cores: SPOJoin(elements=cores, mutable="decomposed", merge_interval=3),
    "ScaleJoin": lambda cores: ScaleJoin(threads=cores),
    "ScaleJoin, indexed": lambda cores: ScaleJoin(threads=cores, index="auto"),
    "SplitJoin": lambda cores: SplitJoin(cores=cores),
    "SplitJoin, indexed": lambda cores: SplitJoin(cores=cores, index="auto"),
    "PanJoin": lambda cores: PanJoin(workers=cores, subwindow=3),
    "IndexJoin": lambda cores: IndexJoin(threads=cores),
    "IndexJoin, chosen": lambda cores: IndexJoin(threads=1, index="auto"),
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


@sampled
@given(surface_cases())
def test_what_runs_without_a_named_engine_follows_the_law(case: SurfaceCase) -> None:
    check(case, None)


@pytest.mark.parametrize("name", ENGINES)
@settings(sampled, max_examples=16)
@given(case=surface_cases(), size=cores)
def test_every_engine_follows_the_law(name: str, case: SurfaceCase, size: int) -> None:
    check(case, ENGINES[name](size))


@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
@settings(sampled, max_examples=30)
@given(data=st.data(), name=st.sampled_from(list(ENGINES)))
def test_every_family_of_types_follows_the_law(family: Family, data: st.DataObject, name: str) -> None:
    check(data.draw(surface_cases(families=(family,))), ENGINES[name](2))


@settings(sampled, max_examples=30)
@given(surface_cases(out_of_order=True, event_times=("int64", "float64", "us")), st.sampled_from(list(ENGINES)))
def test_rows_out_of_order_take_their_place_on_every_engine(case: SurfaceCase, name: str) -> None:
    check(case, ENGINES[name](2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
@settings(sampled, max_examples=500)
@given(case=surface_cases(max_rows=25), size=cores)
def test_very_many_random_joins(name: str, case: SurfaceCase, size: int) -> None:
    check(case, ENGINES[name](size))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
@settings(sampled, max_examples=500)
@given(data=st.data(), name=st.sampled_from(list(ENGINES)))
def test_very_many_random_joins_of_each_family(family: Family, data: st.DataObject, name: str) -> None:
    check(data.draw(surface_cases(families=(family,), max_rows=16)), ENGINES[name](2))


on_ray = st.sampled_from(["SPOJoin", "IndexJoin", "SplitJoin"])


@pytest.mark.usefixtures("ray_cluster")
@settings(sampled, max_examples=1)
@given(case=surface_cases(max_rows=20, kinds=("full",)), name=on_ray)
def test_actors_follow_the_law(case: SurfaceCase, name: str) -> None:
    check(case, ENGINES[name](2), RayRuntime())


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@settings(sampled, max_examples=12)
@given(case=surface_cases(max_rows=20), name=on_ray)
def test_many_joins_of_actors_follow_the_law(case: SurfaceCase, name: str) -> None:
    check(case, ENGINES[name](2), RayRuntime())
