"""The brute-force judge of every join: the semantics of the design (section 3), word for word.

In: the physical sources of each stream, the two roles, a predicate, a window per side. Out: the
result table in result order. It imports nothing of the project, so it can share no mistake with it:
rows are visited one by one in the total order, and each meets every earlier row of the other side.
Two matchers stand side by side: a pure Python loop (`oracle_slow`) and one NumPy comparison per row
(`oracle`). `tests/comparison.py` says how a result is held against this one.

Python's own numbers are the arithmetic of the law: integers are unbounded, an integer against a
float compares exactly, arithmetic of an integer with a float rounds the integer to float64 first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tests.comparison import assert_same_result, assert_same_rows

__all__ = [
    "Band", "Comparison", "Count", "Expected", "Linear", "Time", "Window",
    "assert_same_result", "assert_same_rows", "oracle", "oracle_slow",
]

Number = int | float
Op = Literal["<", "<=", ">", ">=", "=", "!="]
Sources = Mapping[str, Mapping[str, pa.Table]]
Match = Callable[[dict[str, Any], dict[str, Any]], bool]
Array = npt.NDArray[Any]

LEFT, RIGHT = 0, 1
# Up to here float64 holds every integer, and every difference of two of them, exactly.
_FLOAT_SAFE = 2**52
_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}


@dataclass(frozen=True)
class Linear:
    """`scale * column + offset`, evaluated in this order; None leaves the step out."""

    column: str
    scale: Number | None = None
    offset: Number | None = None

    def of(self, value: Any) -> Any:
        """The value for one row; None when it can never match (null or NaN)."""
        if value is None or value != value:
            return None
        if self.scale is not None:
            value = value * self.scale
        if self.offset is not None:
            value = value + self.offset
        return None if value != value else value


@dataclass(frozen=True)
class Comparison:
    """`left op right`: left is of the left role's row, right of the right role's."""

    left: Linear
    op: Op
    right: Linear

    def holds(self, left: Any, right: Any) -> Any:
        return _OPS[self.op](left, right)


@dataclass(frozen=True)
class Band:
    """`abs(left - right) op width`, in the arithmetic of the operands."""

    left: Linear
    right: Linear
    width: Number
    op: Op = "<="

    def holds(self, left: Any, right: Any) -> Any:
        return _OPS[self.op](abs(left - right), self.width)


Term = Comparison | Band
Predicate = Sequence[Term] | Match


@dataclass(frozen=True)
class Count:
    """The last `size` rows, moving in steps of `slide`."""

    size: int
    slide: int = 1


@dataclass(frozen=True)
class Time:
    """The last `size` of event time, in its own unit; for timestamps a timedelta will do as well."""

    size: Number | timedelta
    slide: Number | timedelta | None = None


Window = Count | Time


@dataclass(frozen=True)
class Expected:
    """What a join must give.

    `triples` holds (left position, right position, seq of the later row), one per result row, in
    result order. `ordered` holds each stream's accepted rows in total order: row p has position p.
    `rejected` counts the rows without an event time, by (stream, source).
    """

    table: pa.Table
    triples: list[tuple[int, int, int]]
    ordered: dict[str, pa.Table]
    rejected: dict[tuple[str, str], int]


@dataclass
class Stream:
    """One logical stream after the gate: per position its seq and event time, and the rows."""

    table: pa.Table
    seqs: list[int] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)


def event_times(table: pa.Table, column: str | None) -> list[Any]:
    """Event time per row: row numbers without a column, timestamps as integers of their unit."""
    if column is None:
        return list(range(table.num_rows))
    values = table[column]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    result: list[Any] = values.to_pylist()
    return result


def gate(
    sources: Sources, event_time: str | None
) -> tuple[dict[str, Stream], dict[tuple[str, str], int]]:
    """Merge all sources by (event time, source name, offset) and number the rows."""
    names = [name for of_stream in sources.values() for name in of_stream]
    if len(set(names)) < len(names):
        raise ValueError("two streams share a source name: their order is not defined")
    rejected: dict[tuple[str, str], int] = {}
    arrivals: list[tuple[Any, str, int, str]] = []
    for stream, of_stream in sources.items():
        for source, table in of_stream.items():
            latest: Any = None
            for offset, time in enumerate(event_times(table, event_time)):
                if time is None or time != time:
                    rejected[stream, source] = rejected.get((stream, source), 0) + 1
                    continue
                if latest is not None and time < latest:
                    raise ValueError(f"event time goes backwards in source {source!r}")
                latest = time
                arrivals.append((time, source, offset, stream))
    # Tuples compare element by element and str compares by code point: exactly the law's order.
    arrivals.sort()
    picked: dict[str, list[int]] = {stream: [] for stream in sources}
    merged: dict[str, Stream] = {}
    starts: dict[str, int] = {}
    for stream, of_stream in sources.items():
        merged[stream] = Stream(pa.concat_tables(list(of_stream.values())))
        start = 0
        for source, table in of_stream.items():
            starts[source] = start
            start += table.num_rows
    for seq, (time, source, offset, stream) in enumerate(arrivals):
        merged[stream].seqs.append(seq)
        merged[stream].times.append(time)
        picked[stream].append(starts[source] + offset)
    for stream, rows in picked.items():
        merged[stream].table = merged[stream].table.take(pa.array(rows, pa.int64()))
    return merged, rejected


def in_units(value: Any, unit: str | None) -> Any:
    """A window's size or slide in the unit of the event times."""
    if unit is None:
        if isinstance(value, timedelta):
            raise TypeError("a timedelta needs a timestamp as event time")
        return value
    if not isinstance(value, timedelta):
        return value
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    exact = Fraction(value // timedelta(microseconds=1) * per_second, 10**6)
    return exact.numerator if exact.denominator == 1 else exact


def live(window: Window, unit: str | None, now: Any, times: Sequence[Any], n: int) -> list[int]:
    """Positions of the n rows before a row of time `now` that it may meet: the three formulas."""
    if isinstance(window, Count):
        first = max(0, math.ceil(Fraction(n - window.size, window.slide)) * window.slide)
        return [y for y in range(n) if y >= first]
    size = in_units(window.size, unit)
    if window.slide is None:
        return [y for y in range(n) if now - times[y] <= size]
    slide = in_units(window.slide, unit)
    if isinstance(now, float) or isinstance(size, float) or isinstance(slide, float):
        border: Any = (math.floor((now - size) / slide) + 1) * slide
    else:
        border = ((now - size) // slide + 1) * slide  # floor division of integers is exact
    return [y for y in range(n) if times[y] >= border]


class _SlowMatcher:
    """Every pair on its own, in Python."""

    def __init__(self, predicate: Predicate, left: pa.Table, right: pa.Table) -> None:
        self._rows = (left.to_pylist(), right.to_pylist())
        self._predicate = predicate

    def matches(self, side: int, row: int, others: list[int]) -> list[int]:
        found = []
        for other in others:
            left = self._rows[LEFT][row if side == LEFT else other]
            right = self._rows[RIGHT][other if side == LEFT else row]
            if self._pair(left, right):
                found.append(other)
        return found

    def _pair(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        if callable(self._predicate):
            return self._predicate(left, right)
        for term in self._predicate:
            x, y = term.left.of(left[term.left.column]), term.right.of(right[term.right.column])
            if x is None or y is None or not term.holds(x, y):
                return False
        return True


class _FastMatcher:
    """One NumPy comparison of a row with all its live partners; expressions are worked out once."""

    def __init__(self, terms: Sequence[Term], left: pa.Table, right: pa.Table) -> None:
        self._terms = [
            (term, _columns(term, _evaluate(term.left, left), _evaluate(term.right, right)))
            for term in terms
        ]

    def matches(self, side: int, row: int, others: list[int]) -> list[int]:
        if not others:
            return []
        # Live rows are a run of positions up to the newest: a slice is quicker than a list.
        start, stop = others[0], others[-1] + 1
        assert stop - start == len(others)
        found = np.ones(len(others), dtype=bool)
        for term, columns in self._terms:
            mine, theirs = columns[side], columns[1 - side]
            value, present = mine[0][row], mine[1][row]
            them = theirs[0][start:stop]
            with np.errstate(all="ignore"):  # inf - inf is NaN, which matches nothing
                holds = term.holds(value, them) if side == LEFT else term.holds(them, value)
            found &= np.asarray(holds, dtype=bool) & present & theirs[1][start:stop]
        return [start + int(i) for i in np.flatnonzero(found)]


def _evaluate(expression: Linear, table: pa.Table) -> list[Any]:
    return [expression.of(value) for value in table[expression.column].to_pylist()]


def _columns(term: Term, *sides: list[Any]) -> list[tuple[Array, Array]]:
    """Per side (values, present): float64 where that is exact for both, else Python objects."""
    width = [term.width] if isinstance(term, Band) else []
    ints = [v for values in (*sides, width) for v in values if isinstance(v, int)]
    exact = all(abs(v) <= _FLOAT_SAFE for v in ints)
    dtype: Any = np.float64 if exact else object
    return [
        (
            np.array([0 if v is None else v for v in values], dtype=dtype),
            np.array([v is not None for v in values], dtype=bool),
        )
        for values in sides
    ]


def _selected(
    select: Sequence[str] | None, roles: tuple[str, str], tables: tuple[pa.Table, pa.Table]
) -> list[tuple[str, int, str]]:
    """(result name, side, column) per result column; default: all columns of both."""
    if select is None:
        return [(f"{roles[s]}.{c}", s, c) for s in (LEFT, RIGHT) for c in tables[s].column_names]
    chosen = []
    for name in select:
        role, _, column = name.partition(".")
        chosen.append((name, roles.index(role), column))
    return chosen


def _join(
    sources: Sources,
    left: tuple[str, str],
    right: tuple[str, str],
    predicate: Predicate,
    windows: tuple[Window, Window],
    event_time: str | None,
    select: Sequence[str] | None,
    slow: bool,
) -> Expected:
    if left[0] == right[0]:
        raise ValueError("the two roles need different names")
    streams, rejected = gate(sources, event_time)
    sides = (streams[left[1]], streams[right[1]])
    tables = (sides[LEFT].table, sides[RIGHT].table)
    self_join = left[1] == right[1]
    matcher: _SlowMatcher | _FastMatcher
    if slow or callable(predicate):
        matcher = _SlowMatcher(predicate, *tables)
    else:
        matcher = _FastMatcher(predicate, *tables)
    units: list[str | None] = [None, None]
    if event_time is not None:
        types = [table.schema.field(event_time).type for table in tables]
        units = [t.unit if pa.types.is_timestamp(t) else None for t in types]

    # Each row in total order acts on the side(s) it feeds; in a self-join on the left side first.
    probes = sorted((seq, s, p) for s in (LEFT, RIGHT) for p, seq in enumerate(sides[s].seqs))
    # (later seq, earlier seq, side of the later row, left position, right position)
    results: list[tuple[int, int, int, int, int]] = []
    before = [0, 0]  # rows of each side that came before the present seq
    for seq, side, row in probes:
        other = 1 - side
        n = row if self_join else before[other]  # in a self-join a row is not before itself
        partners = live(windows[other], units[other], sides[side].times[row], sides[other].times, n)
        for met in matcher.matches(side, row, partners):
            pair = (row, met) if side == LEFT else (met, row)
            results.append((seq, sides[other].seqs[met], side, *pair))
        before[side] = row + 1
    results.sort()  # later seq, earlier seq, then the later row on the left (side 0) first

    triples = [(on_left, on_right, seq) for seq, _, _, on_left, on_right in results]
    taken = [pa.array([t[s] for t in triples], pa.int64()) for s in (LEFT, RIGHT)]
    chosen = _selected(select, (left[0], right[0]), tables)
    table = pa.Table.from_arrays(
        [tables[s][column].take(taken[s]) for _, s, column in chosen],
        names=[name for name, _, _ in chosen],
    )
    return Expected(table, triples, {n: s.table for n, s in streams.items()}, rejected)


def oracle(
    sources: Sources,
    left: tuple[str, str],
    right: tuple[str, str],
    predicate: Predicate,
    windows: tuple[Window, Window],
    event_time: str | None = None,
    select: Sequence[str] | None = None,
) -> Expected:
    """The exact result of one join.

    `left` and `right` are (role, stream): the same stream twice is a self-join. `windows` is (left
    window, right window): the window of a side says which rows of that side are live, so a left row
    meets the right rows that are live in the right window. `select` holds names like "R.id".

    Cost: 2,000 x 2,000 rows take about a second, twice that where integers beyond 2^52 occur.
    """
    return _join(sources, left, right, predicate, windows, event_time, select, slow=False)


def oracle_slow(
    sources: Sources,
    left: tuple[str, str],
    right: tuple[str, str],
    predicate: Predicate,
    windows: tuple[Window, Window],
    event_time: str | None = None,
    select: Sequence[str] | None = None,
) -> Expected:
    """`oracle` with one Python comparison per pair: for tiny inputs, to check `oracle` itself."""
    return _join(sources, left, right, predicate, windows, event_time, select, slow=True)
