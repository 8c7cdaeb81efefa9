"""Random joins for hypothesis: everything one call of `StreamJoin` and one of the oracle need.

Values come from small pools, so that ties, empty results and full ones all happen within a few rows,
and hostile values (null, NaN, infinities, -0.0, the ends of int64, neighbours of 2^53) sit in the same
columns as tame ones. Predicates are built as SQL text and as the oracle's terms at once, from the same
draw, so that nobody has to parse one into the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st

from tests.oracle import (
    Band,
    Comparison,
    Count,
    Expected,
    Linear,
    Number,
    Op,
    Sources,
    Term,
    Time,
    Window,
    oracle,
    oracle_slow,
)

TimeKind = Literal["none", "int64", "float64", "timestamp"]

TAME_INTS = (-2, -1, 0, 1, 2, 3)
TAME_FLOATS = (-1.5, -1.0, -0.5, 0.0, 0.1, 0.2, 0.3, 1.0, 2.0)
HOSTILE_INTS = (
    *TAME_INTS, None, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1,
)  # fmt: skip
HOSTILE_FLOATS = (
    *TAME_FLOATS, None, float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 2.0**53, 2.0**53 + 2,
    2.0**63, -(2.0**63), 1.7976931348623157e308,
)  # fmt: skip
INT_COLUMNS, FLOAT_COLUMNS = ("i", "j"), ("x", "y")
KEY_COLUMNS = INT_COLUMNS + FLOAT_COLUMNS
_MIRRORED: dict[Op, Op] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_START = 1_672_531_200_000_000  # 2023-01-01 in microseconds, for timestamps


@dataclass(frozen=True)
class JoinCase:
    """One join and its input, for `StreamJoin` and for the oracle.

    `left` and `right` are role names; `streams` says which stream feeds each (the same one twice is a
    self-join); `cuts` gives, per source, the lengths of the record batches it arrives in; `elements`
    is a number of parallel elements to try.
    """

    left: str
    right: str
    streams: dict[str, str]
    sources: Sources
    on: str
    terms: tuple[Term, ...]
    windows: tuple[Window, Window]
    event_time: str | None
    select: list[str] | None
    cuts: dict[str, tuple[int, ...]]
    elements: int

    @property
    def self_join(self) -> bool:
        return self.streams[self.left] == self.streams[self.right]

    def batches(self) -> dict[str, dict[str, list[pa.RecordBatch]]]:
        """The input as it arrives: stream -> source -> record batches; some may be empty."""
        return {
            stream: {name: cut_table(table, self.cuts[name]) for name, table in of_stream.items()}
            for stream, of_stream in self.sources.items()
        }

    def expected(self, slow: bool = False) -> Expected:
        """What the law says this join gives."""
        judge = oracle_slow if slow else oracle
        left, right = ((role, self.streams[role]) for role in (self.left, self.right))
        return judge(self.sources, left, right, self.terms, self.windows, self.event_time, self.select)


def cut_table(table: pa.Table, lengths: Sequence[int]) -> list[pa.RecordBatch]:
    """Record batches of the given lengths, which add up to the table's."""
    assert sum(lengths) == table.num_rows
    batches, start = [], 0
    for length in lengths:
        columns = [column.slice(start, length).combine_chunks() for column in table.columns]
        batches.append(pa.record_batch(columns, schema=table.schema))
        start += length
    return batches


@st.composite
def cut_lengths(draw: st.DrawFn, rows: int) -> tuple[int, ...]:
    """Lengths of consecutive batches; two cuts at one place make an empty batch."""
    places = sorted(draw(st.lists(st.integers(0, rows), max_size=5)))
    edges = [0, *places, rows]
    return tuple(b - a for a, b in pairwise(edges))


@st.composite
def event_time_columns(draw: st.DrawFn, kind: TimeKind, rows: int) -> pa.Array:
    """Times in order, full of ties; now and then a null or NaN, which rejects its row."""
    steps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 5]), min_size=rows, max_size=rows))
    ticks, now = [], draw(st.integers(0, 3))
    for step in steps:
        now += step
        ticks.append(now)
    gaps = draw(st.sets(st.integers(0, max(rows - 1, 0)), max_size=2)) if draw(st.booleans()) else set()
    if kind == "timestamp":
        values: list[Any] = [_START + tick for tick in ticks]
        kind_of_column: pa.DataType = pa.timestamp("us")
    elif kind == "float64":
        values = [tick * 0.25 for tick in ticks]
        kind_of_column = pa.float64()
    else:
        base = draw(st.sampled_from([0, 0, 0, 0, -7, 2**53 - 3, -(2**63), 2**63 - 100]))
        values = [base + tick for tick in ticks]
        kind_of_column = pa.int64()
    missing = [None, float("nan")] if kind == "float64" else [None]
    for gap in sorted(gaps):
        if gap < rows:
            values[gap] = draw(st.sampled_from(missing))
    return pa.array(values, kind_of_column)


@st.composite
def source_tables(draw: st.DrawFn, first_id: int, kind: TimeKind, hostile: bool, max_rows: int) -> pa.Table:
    """One physical source: id, i, j (int64), x, y (float64) and, unless kind is none, ts."""
    rows = draw(st.integers(0, max_rows))
    ints, floats = (HOSTILE_INTS, HOSTILE_FLOATS) if hostile else (TAME_INTS, TAME_FLOATS)

    def column(pool: Sequence[Any], of_type: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows)), of_type)

    columns = {"id": pa.array(range(first_id, first_id + rows), pa.int64())}
    columns |= {name: column(ints, pa.int64()) for name in INT_COLUMNS}
    columns |= {name: column(floats, pa.float64()) for name in FLOAT_COLUMNS}
    if kind != "none":
        columns["ts"] = draw(event_time_columns(kind, rows))
    return pa.table(columns)


def linear_expressions() -> st.SearchStrategy[Linear]:
    """Mostly plain columns; otherwise scaled and shifted by integers or floats, never by zero."""
    numbers: st.SearchStrategy[Number] = st.sampled_from([-3, -1, 1, 2, 0.1, -0.5, 1.5])
    optional = st.none() | numbers
    plain = st.builds(Linear, st.sampled_from(KEY_COLUMNS))
    return plain | st.builds(Linear, st.sampled_from(KEY_COLUMNS), optional, optional)


def _sql(expression: Linear, role: str, flipped: bool) -> str:
    text = f"{role}.{expression.column}"
    if expression.scale is not None:
        scale = repr(expression.scale)
        text = f"{scale} * {text}" if flipped else f"{text} * {scale}"
    if expression.offset is not None:
        sign, size = ("-", -expression.offset) if expression.offset < 0 else ("+", expression.offset)
        text = f"{text} {sign} {size!r}"
    return text


@st.composite
def predicates(draw: st.DrawFn, left: str, right: str, max_terms: int = 3) -> tuple[str, tuple[Term, ...]]:
    """A conjunction as SQL text, and the same as the oracle's terms."""
    texts: list[str] = []
    terms: list[Term] = []
    for _ in range(draw(st.integers(1, max_terms))):
        x, y = draw(linear_expressions()), draw(linear_expressions())
        flipped = draw(st.booleans())
        one, other = _sql(x, left, flipped), _sql(y, right, flipped)
        shape = draw(st.sampled_from(["compare", "compare", "compare", "band", "between"]))
        if shape == "compare":
            op: Op = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
            terms.append(Comparison(x, op, y))
            spelt = draw(st.sampled_from(["!=", "<>"])) if op == "!=" else None
            said = spelt or (_MIRRORED[op] if flipped else op)
            texts.append(f"{other} {said} {one}" if flipped else f"{one} {said} {other}")
        elif shape == "band":
            width: Number = draw(st.sampled_from([0, 1, 2, 0.1, 0.2, 1.5]))
            edge: Op = draw(st.sampled_from(["<=", "<"]))
            terms.append(Band(x, y, width, edge))
            # Float subtraction is symmetric, so either order of the operands is the same band.
            inner = f"({other}) - ({one})" if flipped else f"({one}) - ({other})"
            texts.append(f"abs({inner}) {edge} {width!r}")
        else:
            shape_of_z = draw(linear_expressions())
            z = Linear(y.column, shape_of_z.scale, shape_of_z.offset)
            terms += [Comparison(x, ">=", y), Comparison(x, "<=", z)]
            texts.append(f"{_sql(x, left, False)} BETWEEN {other} AND {_sql(z, right, False)}")
    return " AND ".join(texts), tuple(terms)


def count_windows() -> st.SearchStrategy[Count]:
    """Small enough that rows expire within a few arrivals; the slide is at most the size."""
    sizes = st.integers(1, 12)
    return sizes.flatmap(lambda size: st.builds(Count, st.just(size), st.integers(1, size)))


@st.composite
def time_windows(draw: st.DrawFn, kind: TimeKind) -> Time:
    """Sizes from 0 on, with or without a slide, as the event time's type wants them."""
    size = draw(st.integers(0, 12))
    slide = draw(st.none() | st.integers(1, max(size, 1)))
    if kind == "timestamp":
        step = timedelta(microseconds=1)
        return Time(size * step, None if slide is None else slide * step)
    if kind == "float64":  # quarters: every sum and quotient in the formulas is exact
        return Time(size * 0.25, None if slide is None else 2.0 ** (slide % 3 - 2))
    return Time(size, slide)


@st.composite
def join_cases(
    draw: st.DrawFn,
    *,
    max_rows: int = 12,
    max_sources: int = 4,
    max_terms: int = 3,
    hostile: bool | None = None,
    self_join: bool | None = None,
    windows: Literal["count", "time", "any"] = "any",
    time_kind: TimeKind | None = None,
    full_select: bool | None = None,
) -> JoinCase:
    """A whole join. Arguments left at None are drawn; `max_rows` is per physical source.

    `hostile=False` keeps to small finite values, which every engine computes alike.
    """
    pick = draw(st.booleans()) if self_join is None else self_join
    tame = draw(st.booleans()) if hostile is None else not hostile
    kinds: list[TimeKind] = ["none", "int64", "float64", "timestamp"] if time_kind is None else [time_kind]
    kind = draw(st.sampled_from(kinds))
    left, right = ("a", "b") if pick else ("R", "S")
    streams = {left: "T", right: "T"} if pick else {left: left, right: right}
    # Names whose order by code point differs from that by number or by dictionary.
    names = draw(st.permutations(["Z", "a", "s-10", "s-9", "ä", "é", "S", "R"]))
    sources: dict[str, dict[str, pa.Table]] = {}
    cuts: dict[str, tuple[int, ...]] = {}
    next_id = 0
    for stream in dict.fromkeys(streams.values()):
        sources[stream] = {}
        for _ in range(draw(st.integers(1, max_sources))):
            name = names[len(cuts)]
            table = draw(source_tables(next_id, kind, not tame, max_rows))
            sources[stream][name] = table
            cuts[name] = draw(cut_lengths(table.num_rows))
            next_id += table.num_rows
    choices: dict[str, st.SearchStrategy[Window]] = {
        "count": count_windows(),
        "time": time_windows(kind),
        "any": count_windows() | time_windows(kind),
    }
    any_window = choices[windows]
    one = draw(any_window)
    pair = (one, one) if draw(st.booleans()) else (one, draw(any_window))
    on, terms = draw(predicates(left, right, max_terms))
    everything = draw(st.booleans()) if full_select is None else full_select
    chosen = [f"{left}.id", f"{right}.id"]
    if not everything and draw(st.booleans()):
        chosen = [f"{right}.x", f"{left}.id", f"{right}.id", f"{left}.i"]
    return JoinCase(
        left=left,
        right=right,
        streams=streams,
        sources=sources,
        on=on,
        terms=terms,
        windows=pair,
        event_time=None if kind == "none" else "ts",
        select=None if everything else chosen,
        cuts=cuts,
        elements=draw(st.integers(1, 4)),
    )
