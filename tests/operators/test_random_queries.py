"""Queries drawn at random over every form of SQL, on every engine and on Ray, judged by the oracle.

A test that fails prints its query and its rows; `pair_query(seed)` and the like make it again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import Engine, MultiJoin, StreamJoin
from operators.query.expressions import Expression
from operators.sql.parse import parse_condition
from tests.comparison import assert_same_result
from tests.operators.surface_check import ENGINES, cores, sampled
from tests.random_forms import Grammar
from tests.random_queries import Query, as_of_query, pair_query, several_query
from topology import LocalRuntime, RayRuntime, Runtime, Workers

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")
seeds = st.integers(0, 2**32 - 1)


def check(query: Query, engine: Engine | None = None, runtime: Runtime | None = None) -> None:
    options = {"event_time": query.event_time, "step_rows": query.step_rows}
    try:
        if len(query.roles) > 2:
            found = MultiJoin.from_sql(query.sql, **options).collect(query.sources, runtime)  # type: ignore[arg-type]
        else:
            join = StreamJoin.from_sql(query.sql, using=engine or "auto", **options)  # type: ignore[arg-type]
            found = join.collect(query.sources, runtime or LocalRuntime())
        known = [name for name in found.column_names if name != "value" or query.computed is None]
        assert_same_result(found.select(known), query.expected)
        query.check(found)
    except BaseException as error:
        error.add_note(repr(query))
        raise


@pytest.mark.parametrize("name", ENGINES)
@settings(sampled, max_examples=18)
@given(seed=seeds, size=cores)
def test_every_engine_answers_random_queries(name: str, seed: int, size: int) -> None:
    check(pair_query(seed), ENGINES[name](size))


@settings(sampled, max_examples=60)
@given(seed=seeds)
def test_random_queries_of_several_streams(seed: int) -> None:
    check(several_query(seed))


@settings(sampled, max_examples=60)
@given(seed=seeds)
def test_random_as_of_queries(seed: int) -> None:
    check(as_of_query(seed))


@settings(sampled, max_examples=120)
@given(seed=seeds)
def test_a_condition_prints_as_text_that_means_the_same(seed: int) -> None:
    printed = repr(_condition(Grammar(Random(seed), ("R", "S")).condition().sql))
    assert repr(_condition(printed)) == printed


def _condition(text: str) -> Expression:
    return parse_condition(text, "R", "S")


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
@settings(sampled, max_examples=500)
@given(seed=seeds, size=cores)
def test_very_many_random_queries(name: str, seed: int, size: int) -> None:
    check(pair_query(seed, most_rows=16), ENGINES[name](size))


@pytest.mark.slow
@settings(sampled, max_examples=2000)
@given(seed=seeds)
def test_very_many_random_queries_without_an_engine(seed: int) -> None:
    check(several_query(seed, most_rows=9))
    check(as_of_query(seed, most_rows=16))


on_ray = st.sampled_from(["SPOJoin", "IndexJoin", "SplitJoin"])


@pytest.mark.usefixtures("ray_cluster")
@settings(sampled, max_examples=1)
@given(seed=seeds, make=st.sampled_from([pair_query, pair_query, several_query, as_of_query]))
def test_actors_answer_random_queries(seed: int, make: Callable[[int], Query]) -> None:
    check(make(seed), None, RayRuntime(placement=Workers(2)))


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@settings(sampled, max_examples=12)
@given(seed=seeds, name=on_ray)
def test_actors_answer_many_random_queries(name: str, seed: int) -> None:
    check(pair_query(seed, most_rows=16), ENGINES[name](2), RayRuntime())
    check(several_query(seed), None, RayRuntime())
    check(as_of_query(seed), None, RayRuntime())
