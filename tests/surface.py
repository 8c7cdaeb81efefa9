"""Random joins over the whole query surface: predicates x types x windows x kinds x orders x event times.

A `SurfaceCase` is one join and its input, for `StreamJoin` (`tests/operators/query/spelling.py`) and for the oracle
(`expected`). Values come from small pools, so that ties, nulls and NaN happen within a few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from random import Random
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st

from tests import oracle_terms as term
from tests.key_families import FAMILIES, Family, column, fits
from tests.oracle import Aggregate, Condition, Count, Expected, Kind, Sources, Time, Unbounded, Window, oracle
from tests.oracle_aggregates import Function
from tests.random_conditions import Slot, conditions, of_one_stream, uses_functions
from tests.sql_spelling import as_sql, readable
from tests.strategies import cut_table

KINDS: tuple[Kind, ...] = ("inner", "left", "right", "full", "semi", "anti", "count", "aggregate")
TimeKind = Literal["none", "int64", "float64", "s", "ms", "us", "ns", "mixed"]
_TIME_KINDS: tuple[TimeKind, ...] = ("none", "int64", "int64", "float64", "s", "us", "ns", "mixed")
_UNITS: tuple[TimeKind, ...] = ("s", "ms", "us", "ns")
_START = 1_709_164_800  # 2024-02-29 in seconds
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class SurfaceCase:
    """One join and its input; `ordering` and `step_rows` are the run's, `written` says how the condition is spelt."""

    left: str
    right: str
    streams: dict[str, str]
    sources: Sources
    on: Condition
    where: tuple[Condition | None, Condition | None]
    windows: tuple[Window, Window]
    kind: Kind
    event_time: str | None
    out_of_order: dict[str, Any]
    select: list[str] | None
    cuts: dict[tuple[str, str], tuple[int, ...]]
    ordering: Literal["strict", "outer", "none"] | int
    step_rows: int
    written: Literal["SQL", "Python"]
    aggregates: tuple[int, tuple[Aggregate, ...]] = (0, ())
    """The side whose rows come out, and what they show of their matches."""

    @property
    def roles(self) -> tuple[str, str]:
        return self.left, self.right

    def inputs(self) -> dict[str, dict[str, pa.Table | list[pa.RecordBatch]]]:
        """The input as it arrives: stream -> source -> record batches; some may be empty."""
        return {
            stream: {name: cut_table(table, self.cuts[stream, name]) or table for name, table in of_stream.items()}
            for stream, of_stream in self.sources.items()
        }

    def expected(self) -> Expected:
        """What the law says this join gives."""
        left, right = ((role, self.streams[role]) for role in self.roles)
        return oracle(
            self.sources, left, right, self.on, self.windows, self.event_time, self.select, self.kind, self.where,
            self.out_of_order, self.aggregates,
        )  # fmt: skip

    def __repr__(self) -> str:
        lines = [f"  {name}={getattr(self, name)!r}" for name in self.__dataclass_fields__ if name != "sources"]
        lines.append(f"  condition: {as_sql(self.on, self.roles)}")
        for stream, of_stream in self.sources.items():
            for source, table in of_stream.items():
                lines.append(f"  {stream}/{source}: " + "; ".join(f"{c} {table[c].type} {table[c].to_pylist()}"
                                                                  for c in table.column_names))  # fmt: skip
        return "SurfaceCase(\n" + "\n".join(lines) + ")"


# --- input ----------------------------------------------------------------------------------------


def times(chance: Random, kind: TimeKind, rows: int, bound: int, base: int, tick: int = 1) -> pa.Array:
    """Event times full of ties, in order but for steps back where there is a bound; now and then null or NaN.

    tick: of so many units are the times multiples, where they are timestamps.
    """
    steps = [0, 0, 1, 1, 2, 5] if bound == 0 else [-4, -2, -1, 0, 1, 1, 2, 5]
    ticks = list(accumulate(chance.choices(steps, k=rows), initial=chance.randint(0, 3)))[:rows]
    values: list[Any] = [tick if chance.random() < 0.95 else None for tick in ticks]
    if kind == "float64":
        return pa.array([float("nan") if value is None else value * 0.25 for value in values], pa.float64())
    if kind == "int64":
        return pa.array([None if value is None else base + value for value in values], pa.int64())
    start = _START * _PER_SECOND[kind]
    return pa.array([None if value is None else start + value * tick for value in values], pa.timestamp(kind))


def slot_values(chance: Random, slot: Slot, types: Sequence[pa.DataType], hostile: bool) -> list[list[Any]]:
    """For each type a few of the values that it can hold, the same ones where it can be, so that rows match."""
    few = chance.randint(2, 6)
    common = [v for v in slot.family.pool(types[0], hostile) if all(fits(v, kind) for kind in types)]
    shared = chance.sample(common, min(few, len(common)))
    own = [slot.family.pool(kind, hostile) for kind in types]
    return [shared + chance.sample(pool, min(2, len(pool))) for pool in own]


def _column(chance: Random, pool: list[Any], kind: pa.DataType, rows: int) -> pa.Array:
    return column([chance.choice(pool) if chance.random() < 0.9 else None for _ in range(rows)], kind)


def _cuts(chance: Random, rows: int) -> tuple[int, ...]:
    """Lengths of consecutive batches; two cuts at one place make an empty batch."""
    places = sorted(chance.randint(0, rows) for _ in range(chance.randint(0, 4)))
    return tuple(end - start for start, end in pairwise([0, *places, rows]))


# --- windows --------------------------------------------------------------------------------------


def tick_of(kind: TimeKind, mixed: bool) -> int:
    """Timestamps of different units are multiples of a quarter of a second, those of whole seconds of a second."""
    return max(1, _PER_SECOND[kind] // 4) if mixed else 1


def _length(kind: TimeKind, ticks: int, tick: int = 1) -> Any:
    """A length of event time of so many ticks."""
    if kind == "float64":
        return ticks * 0.25
    if kind in ("s", "ms", "us"):
        return timedelta(microseconds=ticks * tick * 10**6 // _PER_SECOND[kind])
    return ticks * tick


def windows(chance: Random, kind: TimeKind, per_key: bool, tick: int = 1) -> Window:
    """Small enough that rows expire within a few arrivals."""
    shapes = ["count", "count", "time", "time", "tumbling", "unbounded", *(["per key"] * 4 if per_key else [])]
    shape = chance.choice(shapes)
    size = chance.randint(1, 9)
    if shape == "unbounded":
        return Unbounded()
    if shape == "count":
        return Count(size, chance.randint(1, size))
    if shape == "per key":
        size = chance.randint(1, 3)
        return Count(size, chance.randint(1, size), per_key=True)
    if shape == "tumbling":
        return Count(size, size) if chance.random() < 0.5 else Time(*[_length(kind, size, tick)] * 2)
    slide = chance.choice([None, 1, 2, 4])
    return Time(_length(kind, chance.randint(0, 9), tick), None if slide is None else _length(kind, slide, tick))


# --- aggregates -----------------------------------------------------------------------------------


def aggregates(
    chance: Random, slots: Sequence[Slot], types: Sequence[pa.DataType], hostile: bool
) -> tuple[Aggregate, ...]:
    """A few aggregates of the other side's columns, of those that fit their types; sums stay within theirs."""
    possible = [Aggregate("sum_id", "sum", "id"), Aggregate("avg_id", "avg", "id"), Aggregate("most_id", "max", "id")]
    for slot, kind in zip(slots, types, strict=True):
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        functions: list[Function] = ["count", "min", "max"]
        whole = pa.types.is_integer(plain) or pa.types.is_boolean(plain)
        if pa.types.is_floating(plain) or whole or (pa.types.is_decimal(plain) and plain.bit_width <= 128):
            functions.append("avg")
            always = pa.types.is_floating(plain) or (whole and plain.bit_width < 64)
            functions += ["sum"] if always or not hostile else []
        elif pa.types.is_duration(plain) and not hostile:
            functions.append("sum")
        possible += [Aggregate(f"{each}_{slot.name}", each, slot.name) for each in functions]
    return (Aggregate("n", "count"), *chance.sample(possible, min(len(possible), chance.randint(1, 4))))


# --- cases ----------------------------------------------------------------------------------------


@st.composite
def surface_cases(
    draw: st.DrawFn,
    *,
    families: tuple[Family, ...] = FAMILIES,
    kinds: tuple[Kind, ...] = KINDS,
    max_rows: int = 12,
    max_sources: int = 2,
    hostile: bool | None = None,
    event_times: tuple[TimeKind, ...] = _TIME_KINDS,
    out_of_order: bool | None = None,
    windows_per_key: bool = True,
    with_where: bool = True,
    orderings: tuple[Any, ...] = ("strict", "strict", "outer", "none", 1, 3, 7),
) -> SurfaceCase:
    """A whole join. Arguments left at None are drawn; `max_rows` is per physical source.

    Hypothesis draws the condition and the number of rows, so that it can make them smaller; everything else follows
    from one seed that it draws, which spreads evenly over the matrix.
    """
    chance = Random(draw(st.integers(0, 2**32 - 1)))
    same = chance.random() < 0.25
    left, right = ("a", "b") if same else ("R", "S")
    streams = {left: "T", right: "T"} if same else {left: left, right: right}
    names = list(dict.fromkeys(streams.values()))
    kind = chance.choice(event_times)
    wild = chance.random() < 0.4 if hostile is None else hostile
    slots = tuple(Slot(name, chance.choice(families)) for name in "pqr"[: chance.randint(1, 3)])
    late = kind != "none" and (chance.random() < 0.25 if out_of_order is None else out_of_order)
    base = chance.choice([0, 0, 0, -7, 2**53 - 3, -(2**63) + 100, 2**63 - 300])
    types = {slot: [chance.choice(slot.family.types) for _ in names] for slot in slots}
    values = {slot: slot_values(chance, slot, types[slot], wild) for slot in slots}

    units = [chance.choice(_UNITS) if kind == "mixed" else kind for _ in names]
    ticks = [tick_of(unit, kind == "mixed") for unit in units]

    sources: dict[str, dict[str, pa.Table]] = {}
    cuts: dict[tuple[str, str], tuple[int, ...]] = {}
    bounds: dict[str, Any] = {}
    next_id = 0
    for which, stream in enumerate(names):
        bound = chance.randint(1, 5) if late else 0
        if bound:
            bounds[stream] = _length(units[which], bound, ticks[which])
        sources[stream] = {}
        for source in chance.sample(["Z", "a", "s-10", "s-9", "ä"], chance.randint(1, max_sources)):
            rows = max_rows - draw(st.integers(0, max_rows))
            table = {"id": pa.array(range(next_id, next_id + rows), pa.int64())}
            table |= {s.name: _column(chance, values[s][which], types[s][which], rows) for s in slots}
            if kind != "none":
                table["ts"] = times(chance, units[which], rows, bound, base, ticks[which])
            sources[stream][source] = pa.table(table)
            cuts[stream, source] = _cuts(chance, rows)
            next_id += rows
    on = draw(conditions(slots))
    keyed = chance.random() < 0.3
    if keyed:
        equal = term.Compare("=", term.Column(0, slots[0].name), term.Column(1, slots[0].name))
        on = term.And((equal, on)) if chance.random() < 0.5 else equal
    per_key = keyed and windows_per_key
    one, other = (windows(chance, units[which], per_key, ticks[which]) for which in (0, len(names) - 1))
    shown = chance.choice(kinds)
    where: list[Condition | None] = [None, None]
    for side in (0, 1):
        if with_where and chance.random() < 0.15:
            where[side] = draw(of_one_stream(slots, side))
    own = 0
    wanted: tuple[Aggregate, ...] = ()
    if shown == "aggregate":
        own = chance.randint(0, 1)
        matched = 0 if same else 1 - own
        wanted = aggregates(chance, slots, [types[slot][matched] for slot in slots], wild)
    select = [f"{left}.id"] if shown in ("semi", "anti") else [f"{right}.id", f"{left}.id"]
    if shown == "aggregate":
        select = [f"{(left, right)[own]}.id"]
    written: Literal["SQL", "Python"] = "Python" if uses_functions(on) or chance.random() < 0.5 else "SQL"
    if written == "SQL":
        on, where = readable(on), readable(tuple(where))
    return SurfaceCase(
        left=left,
        right=right,
        streams=streams,
        sources=sources,
        on=on,
        where=(where[0], where[1]),
        windows=(one, one if chance.random() < 0.5 and len(set(units)) == 1 else other),
        kind=shown,
        event_time=None if kind == "none" else "ts",
        out_of_order=bounds,
        select=select if chance.random() < 0.5 else None,
        cuts=cuts,
        ordering=chance.choice(orderings),
        step_rows=chance.randint(1, 9),
        written=written,
        aggregates=(own, wanted),
    )
