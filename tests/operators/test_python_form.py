"""Joins follow the law from their first row, while Python runs the kernels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.indexes.kernels.python_kernels import python_kernels
from tests.key_families import FAMILIES, Family
from tests.operators.surface_check import ENGINES, check, sampled
from tests.surface import SurfaceCase, surface_cases

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")


@pytest.mark.parametrize("name", ENGINES)
@settings(sampled, max_examples=3)
@given(case=surface_cases())
def test_every_engine_follows_the_law_in_python_form(name: str, case: SurfaceCase) -> None:
    with python_kernels():
        check(case, ENGINES[name](2))


@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
@settings(sampled, max_examples=3)
@given(data=st.data(), name=st.sampled_from(list(ENGINES)))
def test_every_family_of_types_follows_the_law_in_python_form(family: Family, data: st.DataObject, name: str) -> None:
    with python_kernels():
        check(data.draw(surface_cases(families=(family,))), ENGINES[name](2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
@settings(sampled, max_examples=100)
@given(case=surface_cases(max_rows=25))
def test_many_joins_follow_the_law_in_python_form(name: str, case: SurfaceCase) -> None:
    with python_kernels():
        check(case, ENGINES[name](2))
