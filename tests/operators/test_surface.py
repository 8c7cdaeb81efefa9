"""The whole query surface against the oracle: predicates x types x windows x kinds x orders x engines, sampled.

What is drawn is printed when a test fails, with hypothesis' own blob to replay it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.key_families import FAMILIES, Family
from tests.operators.surface_check import ENGINES, check, cores, sampled
from tests.surface import SurfaceCase, surface_cases
from topology import RayRuntime, Workers

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")


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


on_ray = st.sampled_from(["SPOJoin", "IndexJoin", "IndexJoin, divided", "SplitJoin"])


@pytest.mark.usefixtures("ray_cluster")
@settings(sampled, max_examples=1)
@given(case=surface_cases(max_rows=20, kinds=("full",)), name=on_ray)
def test_actors_follow_the_law(case: SurfaceCase, name: str) -> None:
    check(case, ENGINES[name](2), RayRuntime(placement=Workers(3)))


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@settings(sampled, max_examples=12)
@given(case=surface_cases(max_rows=20), name=on_ray)
def test_many_joins_of_actors_follow_the_law(case: SurfaceCase, name: str) -> None:
    check(case, ENGINES[name](2), RayRuntime())
