"""Lateness against its definition: earlier than the greatest time before, less the bound; row by row, in Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from operators.intake.promise import Promise
from topology.graph.event_time import Times

LEAST, GREATEST = -(2**63), 2**63 - 1
WHOLE = st.one_of(st.integers(-4, 4), st.sampled_from([LEAST, LEAST + 1, LEAST + 3, GREATEST, GREATEST - 1, 2**53 + 1]))
FLOATS = st.sampled_from([-np.inf, -1e308, -2.5, -0.0, 0.0, 0.1, 0.2, 0.30000000000000004, 3.0, 1e16, 1e308, np.inf])


def late_by_definition(times: list[int] | list[float], bound: int | float) -> list[bool]:
    late = []
    for offset, time in enumerate(times):
        before = times[:offset]
        late.append(bool(before) and time < max(before) - bound)
    return late


def late_in_batches(times: list[int] | list[float], kind: type, bound: int | float, cuts: list[int]) -> list[bool]:
    promise = Promise(bound)
    late: list[bool] = []
    edges = sorted({0, len(times), *(cut % (len(times) + 1) for cut in cuts)})
    for begin, end in pairwise(edges):
        part: Times = np.array(times[begin:end], kind)
        found = promise.late(part)
        late += [False] * len(part) if found is None else found.tolist()
        assert promise.time is not None
        assert promise.time == max(LEAST, max(times[:end]) - bound) or kind is np.float64
    return late


@given(st.lists(WHOLE, max_size=12), st.one_of(st.integers(0, 5), st.sampled_from([2**63, 2**64 - 1, 2**64, 10**30])),
       st.lists(st.integers(0, 12)))  # fmt: skip
@example([GREATEST, LEAST], 2**64 - 2, [])
@example([GREATEST, LEAST], 2**64 - 1, [])
@example([GREATEST, LEAST, LEAST + 1], 2**64 - 2, [1, 2])
def test_whole_times_are_late_by_definition_however_they_are_cut(times: list[int], bound: int, cuts: list[int]) -> None:
    assert late_in_batches(times, np.int64, bound, cuts) == late_by_definition(times, bound)


@given(st.lists(FLOATS, max_size=12), st.sampled_from([0.0, 0.1, 0.5, 2.5, 1e308]), st.lists(st.integers(0, 12)))
@example([0.30000000000000004, 0.2], 0.1, [])
@example([-1e308, -np.inf], 1e308, [])
def test_float_times_are_late_as_float64_has_it(times: list[float], bound: float, cuts: list[int]) -> None:
    assert late_in_batches(times, np.float64, bound, cuts) == late_by_definition(times, bound)


def test_it_does_as_the_example_says() -> None:
    promise = Promise(2)
    late = promise.late(np.array([1, 4, 2, 1, 7, 5, 4]))
    assert late is not None
    assert np.flatnonzero(late).tolist() == [3, 6]
    assert promise.time == 5
