"""Random joins of several streams: conditions as SQL text and as functions of rows at once."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa

from indexes import CATALOGUE
from operators import ConfiguredIndex, CountWindow, MultiJoin, TimeWindow, UnboundedWindow
from tests.oracle_several import ExpectedSeveral, oracle_several
from tests.oracle_windows import Count, Time, Unbounded, Window

COMPARE = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
TICKS = {"s": 1, "ms": 250, "us": 250_000, "ns": 250_000_000}
"""Timestamps of each unit are multiples of so many, a quarter of a second or one."""

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Value:
    """A column of a role plus a number."""

    role: str
    column: str
    plus: int = 0

    def sql(self) -> str:
        return f"{self.role}.{self.column}" + (f" + {self.plus}" if self.plus else "")

    def of(self, rows: Rows) -> Any:
        value = rows[self.role][self.column]
        return value if value is None or not self.plus else value + self.plus


@dataclass(frozen=True)
class Compare:
    op: str
    left: Value
    right: Value
    more: Value | None = None

    def sql(self) -> str:
        more = f" + {self.more.sql()}" if self.more else ""
        return f"{self.left.sql()} {self.op} {self.right.sql()}{more}"

    def truth(self, rows: Rows) -> bool | None:
        values = [self.left.of(rows), self.right.of(rows), *([self.more.of(rows)] if self.more else [])]
        if any(value is None for value in values):
            return None
        right = values[1] + values[2] if self.more else values[1]
        found: bool = COMPARE[self.op](values[0], right)
        return found


@dataclass(frozen=True)
class Alike:
    """Whether two columns hold the same, a missing value being like another."""

    left: Value
    right: Value

    def sql(self) -> str:
        return f"{self.left.sql()} IS NOT DISTINCT FROM {self.right.sql()}"

    def truth(self, rows: Rows) -> bool:
        return bool(self.left.of(rows) == self.right.of(rows))


@dataclass(frozen=True)
class Every:
    parts: tuple[Any, ...]
    any: bool = False

    def sql(self) -> str:
        return "(" + (" OR " if self.any else " AND ").join(part.sql() for part in self.parts) + ")"

    def truth(self, rows: Rows) -> bool | None:
        truths = [part.truth(rows) for part in self.parts]
        if self.any in truths:
            return self.any
        return None if None in truths else not self.any


@dataclass(frozen=True)
class Opposite:
    part: Any

    def sql(self) -> str:
        return f"NOT {Every((self.part,)).sql()}"

    def truth(self, rows: Rows) -> bool | None:
        found = self.part.truth(rows)
        return None if found is None else not found


@dataclass(frozen=True)
class SeveralCase:
    """One join of several streams and its input."""

    roles: dict[str, str]
    sources: dict[str, dict[str, pa.Table]]
    on: Every
    windows: tuple[Window, ...]
    event_time: str | None
    out_of_order: dict[str, int]
    select: list[str] | None
    step_rows: int
    index: str | ConfiguredIndex | dict[str, str | ConfiguredIndex]

    def expected(self) -> ExpectedSeveral:
        return oracle_several(
            self.sources, self.roles, self.on.truth, self.windows, self.event_time, self.select, self.out_of_order
        )

    def join(self, sql: bool) -> MultiJoin:
        windows = [window_of(window) for window in self.windows]
        options: dict[str, Any] = {
            "event_time": self.event_time, "out_of_order": self.out_of_order or None, "step_rows": self.step_rows,
            "index": self.index,
        }  # fmt: skip
        if not sql:
            return MultiJoin(self.roles, self.on.sql(), windows, select=self.select, **options)
        shown = "*" if self.select is None else ", ".join(self.select)
        tables = ", ".join(f"{stream} AS {role}" for role, stream in self.roles.items())
        return MultiJoin.from_sql(f"SELECT {shown} FROM {tables} WHERE {self.on.sql()}", windows=windows, **options)


def window_of(window: Window) -> CountWindow | TimeWindow | UnboundedWindow:
    match window:
        case Count(size, slide):
            return CountWindow(size, slide)
        case Time(size, slide):
            return TimeWindow(size, slide)
    return UnboundedWindow()


def random_condition(chance: Random, roles: list[str]) -> Every:
    """Mostly links between neighbours, and something of every other shape now and then."""

    def value(role: str) -> Value:
        return Value(role, chance.choice(["k", "x", "x", "s"]), 0)

    def compare(*among: str) -> Compare:
        left, right = chance.sample(among, 2) if len(among) > 1 else (among[0], among[0])
        column = chance.choice(["k", "x", "x", "s"])
        plus = chance.choice([0, 0, 1, -1]) if column != "s" else 0
        return Compare(chance.choice(list(COMPARE)), Value(left, column), Value(right, column, plus))

    parts: list[Any] = []
    for one, other in pairwise(roles):
        if chance.random() < 0.8:
            column = chance.choice(["k", "x", "s"])
            parts.append(Compare(chance.choice(["=", "=", "<", ">=", "!="]), Value(one, column), Value(other, column)))
        elif chance.random() < 0.5:
            column = chance.choice(["k", "x", "s"])
            parts.append(Alike(Value(one, column), Value(other, column, int(column == "k" and chance.random() < 0.2))))
    for _ in range(chance.randint(0, 2)):
        parts.append(compare(*roles))
    if chance.random() < 0.3:
        role = chance.choice(roles)
        parts.append(Compare(chance.choice(["<", ">="]), Value(role, "k"), Value(role, "x")))
    if chance.random() < 0.3:
        parts.append(Every((compare(*roles), compare(*roles)), any=True))
    if chance.random() < 0.2:
        parts.append(Opposite(Every((compare(*roles), compare(*roles)), any=chance.random() < 0.5)))
    if chance.random() < 0.3 and len(roles) > 2:
        a, b, c = chance.sample(roles, 3)
        parts.append(Compare(chance.choice(["<", ">"]), Value(a, "x"), Value(b, "x"), Value(c, "k")))
    return Every(tuple(parts) or (compare(*roles),))


def random_table(chance: Random, rows: int, first: int, timed: str, bound: int) -> pa.Table:
    """Rows of one source; `timed`: "no", "whole", or the unit of timestamps."""

    def some(values: list[Any]) -> list[Any]:
        return [chance.choice(values) if chance.random() < 0.92 else None for _ in range(rows)]

    time, times = chance.randint(0, 3), []
    for _ in range(rows):
        time += chance.choice([0, 0, 1, 1, 3] if not bound else [-2, -1, 0, 1, 1, 3])
        times.append(time)
    table = {
        "id": pa.array(range(first, first + rows), pa.int64()),
        "k": pa.array(some([0, 1, 2]), pa.int64()),
        "x": pa.array(some(list(range(-3, 6))), pa.int32() if chance.random() < 0.3 else pa.int64()),
        "s": pa.array(some(["", "a", "ab", "b", "a longer text", "a longer text!"]), pa.string()),
    }
    if timed in TICKS:
        table["ts"] = pa.array([time * TICKS[timed] for time in times], pa.timestamp(timed))
    elif timed != "no":
        table["ts"] = pa.array(times, pa.int64())
    return pa.table(table)


def random_case(seed: int, most_rows: int = 9) -> SeveralCase:
    """A whole case from one number."""
    chance = Random(seed)
    count = chance.choice([2, 3, 3, 3, 4])
    names = chance.sample(["a", "b", "c", "d"], count)
    roles = {name: name for name in names}
    if chance.random() < 0.3:
        one, other = chance.sample(names, 2)
        roles[one] = roles[other]
    timed = chance.random() < 0.8
    mixed = timed and chance.random() < 0.25
    forms = {stream: (chance.choice(list(TICKS)) if mixed else "whole") if timed else "no" for stream in roles.values()}
    bounds = {
        stream: chance.randint(1, 4) * TICKS.get(form, 1)
        for stream, form in forms.items()
        if timed and chance.random() < 0.15
    }
    sources: dict[str, dict[str, pa.Table]] = {}
    first = 0
    rows = most_rows if count < 4 else max(3, most_rows - 3)
    for stream in dict.fromkeys(roles.values()):
        sources[stream] = {}
        kinds = chance.randrange(1 << 30)
        for source in chance.sample(["Z", "p", "q"], chance.choice([1, 1, 2])):
            table = random_table(chance, chance.randint(0, rows), first, forms[stream], bounds.get(stream, 0))
            sources[stream][source] = table.set_column(2, "x", table["x"].cast([pa.int32(), pa.int64()][kinds % 2]))
            first += table.num_rows

    def window(role: str) -> Window:
        size, tick = chance.randint(1, 7), TICKS.get(forms[roles[role]], 1)
        shapes: list[Window] = [
            Count(size),
            Count(size, chance.randint(1, size)),
            Time(size * tick),
            Time(size * tick, chance.randint(1, 3) * tick),
        ]
        return chance.choice([*shapes, Unbounded()])

    windows = tuple(map(window, names))
    select = None if chance.random() < 0.5 else [f"{name}.id" for name in reversed(names)]
    step_rows = chance.randint(1, 12)
    on = random_condition(chance, names)
    configured = ConfiguredIndex("PIMTree", {"merge_ratio": 0.5, "at_once": 0})
    indexes: list[str | ConfiguredIndex] = ["auto", chance.choice(list(CATALOGUE)), configured]
    for_all = chance.choice(indexes)
    any_index: list[str | ConfiguredIndex] = [configured, *CATALOGUE]
    for_some = {name: chance.choice(any_index) for name in names if chance.random() < 0.7}
    index: str | ConfiguredIndex | dict[str, str | ConfiguredIndex]
    index = for_some if chance.random() < 0.4 else for_all
    return SeveralCase(roles, sources, on, windows, "ts" if timed else None, bounds, select, step_rows, index)
