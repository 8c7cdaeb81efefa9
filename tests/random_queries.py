"""Random queries in SQL, whole: any kind of join, any form of condition (`tests/random_forms.py`), with what they give.

A query is its text, its input, and the result that the law demands. It follows from one number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

from tests.oracle import Aggregate, Count, Kind, Sources, Time, Unbounded, Window, oracle
from tests.oracle_as_of import oracle_as_of
from tests.oracle_several import oracle_several
from tests.oracle_terms import Truth
from tests.random_forms import Grammar
from tests.random_values import COLUMNS, Form, column, compare, every, ordered, table

KINDS: dict[Kind, tuple[str, ...]] = {
    "inner": ("JOIN", "INNER JOIN", ",", "CROSS JOIN"), "left": ("LEFT JOIN",), "right": ("RIGHT JOIN",),
    "full": ("FULL JOIN",), "semi": ("SEMI JOIN",), "anti": ("LEFT ANTI JOIN",), "count": ("JOIN",),
    "aggregate": ("JOIN",),
}  # fmt: skip
AGGREGATES = {
    "n": ("COUNT(*)", Aggregate("n", "count")),
    "known": ("COUNT({}.x)", Aggregate("known", "count", "x")),
    "total": ("SUM({}.i)", Aggregate("total", "sum", "i")),
    "least": ("MIN({}.t)", Aggregate("least", "min", "t")),
    "last": ("MAX({}.at)", Aggregate("last", "max", "at")),
    "mean": ("AVG({}.j)", Aggregate("mean", "avg", "j")),
}  # fmt: skip
USABLE = ("i", "t", "d", "p", "l")
"""Columns of USING, and keys of as-of joins."""


@dataclass(frozen=True)
class Query:
    """One query; `computed` is a selected value that the oracle does not know, called `value`."""

    sql: str
    sources: Sources
    expected: pa.Table
    event_time: str | None
    step_rows: int
    roles: Mapping[str, str]
    computed: Form | None = None

    def check(self, found: pa.Table) -> None:
        """Whether a result is the expected one; call `same` of the module for the order."""
        if self.computed is None:
            return
        by_id = {stream: rows_by_id(of_stream) for stream, of_stream in self.sources.items()}
        nobody = dict.fromkeys([*COLUMNS, "f", "id", "ts"])
        for row in found.to_pylist():
            rows = {
                role: nobody if row.get(f"{role}.id") is None else by_id[stream][row[f"{role}.id"]]
                for role, stream in self.roles.items()
            }
            got, wanted = plain(row["value"]), plain(self.computed.value(rows))
            assert got == wanted, f"`{self.computed.sql}` of {rows} is {wanted!r}, not {got!r}"

    def __repr__(self) -> str:
        lines = [self.sql, f"event_time={self.event_time!r}, step_rows={self.step_rows}"]
        for stream, of_stream in self.sources.items():
            lines += [f"{stream}/{name}: {each.to_pylist()}" for name, each in of_stream.items()]
        return "\n".join(lines)


def plain(value: Any) -> Any:
    """A value as the law compares it; NaN is none."""
    if isinstance(value, float) and value != value:
        return None
    return ordered(Fraction(value) if not isinstance(value, float) and hasattr(value, "as_tuple") else value)


def rows_by_id(of_stream: Mapping[str, pa.Table]) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for each in of_stream.values() for row in each.to_pylist()}


@dataclass(frozen=True)
class OfRow:
    """A condition on one role, for the oracle, which knows a row by the values that the law computes with."""

    form: Form
    role: str
    rows: Mapping[int, dict[str, Any]]

    def truth(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> Truth:
        return self.form.truth({self.role: self.rows[(left or right)["id"]]})


def _sources(chance: Random, streams: Sequence[str], most: int) -> Sources:
    found: dict[str, dict[str, pa.Table]] = {}
    first = 0
    for stream in streams:
        found[stream] = {}
        for source in chance.sample(["p", "q"], chance.choice([1, 1, 2])):
            rows = chance.randint(0, most)
            found[stream][source] = table(chance, rows, first)
            first += rows
    return found


def _window(chance: Random, timed: bool) -> tuple[str, Window]:
    size = chance.randint(1, 9)
    slide = chance.randint(1, size)
    shapes: list[tuple[str, Window]] = [
        (f"(ROWS {size})", Count(size)),
        (f"(SLIDE ROWS {slide} ON {size})", Count(size, slide)),
        (f"(TUMBLE ROWS {size})", Count(size, size)),
        ("(UNBOUNDED)", Unbounded()),
    ]
    if timed:
        shapes += [(f"(INTERVAL '{size}')", Time(size)), (f"(SLIDE INTERVAL '{slide}' ON '{size}')", Time(size, slide))]
    return chance.choice(shapes)


def _windows(chance: Random, roles: Sequence[str], timed: bool) -> tuple[str, list[Window]]:
    """The clause, and the window of each role."""
    found = [_window(chance, timed) for _ in roles]
    if chance.random() < 0.4:
        return f"WINDOW AS {found[0][0]}", [found[0][1]] * len(roles)
    clause = ", ".join(f"{role} AS {written}" for role, (written, _) in zip(roles, found, strict=True))
    return f"WINDOW {clause}", [window for _, window in found]


def _naming(draw: Callable[[], Form], *roles: str) -> Form:
    """A form that names columns of all these roles."""
    while True:
        form = draw()
        if all(f"{role}." in form.sql for role in roles):
            return form


def pair_query(seed: int, most_rows: int = 9) -> Query:
    """A join of two streams, or of one with itself."""
    chance = Random(seed)
    left, right = roles = ("R", "S") if chance.random() < 0.8 else ("a", "b")
    streams = {role: role if left == "R" else "T" for role in roles}
    sources = _sources(chance, list(dict.fromkeys(streams.values())), most_rows)
    event_time = chance.choice([None, "ts"])
    kind: Kind = chance.choice(["inner", "inner", "inner", *KINDS])
    join = chance.choice(KINDS[kind])
    both = Grammar(chance, roles)
    parts: list[Form] = []
    text = f"{join} {streams[right]} AS {right}"
    if join.endswith("JOIN") and join != "CROSS JOIN" and chance.random() < 0.15:
        names = chance.sample(USABLE, chance.choice([1, 1, 2]))
        parts += [compare("=", column(left, name), column(right, name)) for name in names]
        text += f" USING ({', '.join(names)})"
    elif join.endswith("JOIN") and join != "CROSS JOIN":
        parts.append(both.condition())
        text += f" ON {parts[0].sql}"
    where: list[OfRow | None] = [None, None]
    clause = ""
    if kind == "inner" and (join in (",", "CROSS JOIN") or chance.random() < 0.3):
        parts.append(_naming(both.condition, *roles))
        clause = f" WHERE {parts[-1].sql}"
    elif chance.random() < 0.3 and kind not in ("full", "inner"):
        side = {"right": 1, "count": chance.randint(0, 1), "aggregate": chance.randint(0, 1)}.get(kind, 0)
        form = _naming(lambda: Grammar(chance, roles[side : side + 1]).condition(1), roles[side])
        rows = rows_by_id(sources[streams[roles[side]]])
        where[side] = OfRow(form, roles[side], rows)
        clause = f" WHERE {form.sql}"
    matching = every(parts)

    shown = [f"{left}.id"] if kind in ("semi", "anti", "aggregate") else [f"{right}.id", f"{left}.id"]
    items = list(shown)
    wanted: list[Aggregate] = []
    computed: Form | None = None
    if kind == "count":
        items.append("COUNT(*) AS matches")
    elif kind == "aggregate":
        names = chance.sample(list(AGGREGATES), chance.randint(1, 3))
        items += [f"{AGGREGATES[name][0].format(right)} AS {name}" for name in names]
        wanted = [AGGREGATES[name][1] for name in names]
        clause += f" GROUP BY {left}"
    elif chance.random() < 0.4:
        of = roles[:1] if kind in ("semi", "anti") else roles
        values = Grammar(chance, of)
        kinds: list[Any] = ["integer", "float", "decimal", "text", "date", "moment", "list"]
        draw = [lambda: values.value(chance.choice(kinds), of, 2), lambda: values.condition(1)]
        computed = _naming(chance.choice(draw))
        while not any(f"{role}." in computed.sql for role in of):
            computed = chance.choice(draw)()
        items.append(f"{computed.sql} AS value")
    written, windows = _windows(chance, roles, event_time is not None)
    expected = oracle(
        sources, (left, streams[left]), (right, streams[right]),
        lambda one, other: matching.truth({left: one, right: other}) is True, (windows[0], windows[1]),
        event_time, shown, kind, (where[0], where[1]), None, (0, wanted),  # type: ignore[arg-type]
    )  # fmt: skip
    sql = (
        f"SELECT {', '.join(items)} FROM {streams[left]} AS {left}{'' if join == ',' else ' '}{text}{clause} {written}"
    )
    return Query(sql, sources, expected.table, event_time, chance.randint(1, 9), streams, computed)


def as_of_query(seed: int, most_rows: int = 9) -> Query:
    """An as-of join, with equalities between the streams and any conditions on one of them."""
    chance = Random(seed)
    sources = _sources(chance, ["L", "R"], most_rows)
    keys = chance.sample(USABLE, chance.choice([0, 1, 1, 2]))
    sign, outer = chance.choice([">=", ">=", ">", "<=", "<"]), chance.random() < 0.5
    tests: dict[str, Form] = {}
    for name, role in (("left", "L"), ("right", "R"), ("shown", "L")):
        if chance.random() < 0.4:
            grammar = Grammar(chance, (role,), constants=role == "L")  # a part without columns is one on the left
            tests[name] = _naming(lambda grammar=grammar: grammar.condition(1), role)  # type: ignore[misc]
    on = [f"L.{key} = R.{key}" for key in keys] + [tests[name].sql for name in ("left", "right") if name in tests]
    text = "ASOF LEFT JOIN R" if outer else "ASOF JOIN R"
    if chance.random() < 0.5:
        text += f" MATCH_CONDITION (L.ts {sign} R.ts)" + (f" ON {' AND '.join(on)}" if on else "")
    else:
        place = chance.randint(0, len(on))
        text += f" ON {' AND '.join([*on[:place], f'L.ts {sign} R.ts', *on[place:]])}"
    where = f" WHERE {tests['shown'].sql}" if "shown" in tests else ""
    marked = {stream: dict(of_stream) for stream, of_stream in sources.items()}
    for name, role, flag in (("left", "L", "ok"), ("right", "R", "ok"), ("shown", "L", "shown")):
        for source, rows in marked[role].items():
            true = [name not in tests or tests[name].truth({role: row}) is True for row in rows.to_pylist()]
            marked[role][source] = rows.append_column(flag, pa.array(true, pa.bool_()))
    expected = oracle_as_of(
        marked, [(key, key) for key in keys], "backward" if sign in (">", ">=") else "forward",
        strict=sign in ("<", ">"), inner=not outer, matching=("ok", "ok"), shown="shown",
    )  # fmt: skip
    sql = f"SELECT L.id, R.id FROM L {text}{where}"
    return Query(sql, sources, expected, "ts", chance.randint(1, 9), {"L": "L", "R": "R"})


def several_query(seed: int, most_rows: int = 6) -> Query:
    """A join of three streams; two of them may be one."""
    chance = Random(seed)
    roles = ("a", "b", "c")
    streams = {role: chance.choice([role, role, role, "b"]) for role in roles}
    sources = _sources(chance, list(dict.fromkeys(streams.values())), most_rows)
    event_time = chance.choice([None, "ts"])
    second, third = (
        _naming(Grammar(chance, pair).condition, *pair)
        for pair in (("a", "b"), chance.choice([("b", "c"), ("a", "c")]))
    )
    parts = [second, third]
    if chance.random() < 0.6:
        parts.append(_naming(Grammar(chance, roles).condition, "a"))
    last = parts[2:]
    froms = [f"{streams[role]} AS {role}" for role in roles]
    form = chance.choice(["list", "join", "cross"])
    if form == "list":
        text, last = ", ".join(froms), parts
    elif form == "join":
        text = f"{froms[0]} JOIN {froms[1]} ON {second.sql} JOIN {froms[2]} ON {third.sql}"
    else:
        text, last = f"{froms[0]} JOIN {froms[1]} ON {second.sql} CROSS JOIN {froms[2]}", parts[1:]
    if last:
        text += f" WHERE {' AND '.join(each.sql for each in last)}"
    written, windows = _windows(chance, roles, event_time is not None)
    by_id = {stream: rows_by_id(of_stream) for stream, of_stream in sources.items()}
    whole = every(parts)

    def match(rows: Mapping[str, Mapping[str, Any]]) -> Truth:
        return whole.truth({role: by_id[streams[role]][row["id"]] for role, row in rows.items()})

    shown = ["c.id", "a.id", "b.id"]
    expected = oracle_several(sources, streams, match, windows, event_time, shown).table
    items, computed = list(shown), None
    if chance.random() < 0.4:
        values = Grammar(chance, roles)
        kinds: list[Any] = ["integer", "text", "moment", "float"]
        computed = _naming(lambda: values.value(chance.choice(kinds), roles, 2), chance.choice(roles))
        items.append(f"{computed.sql} AS value")
    sql = f"SELECT {', '.join(items)} FROM {text} {written}"
    return Query(sql, sources, expected, event_time, chance.randint(1, 9), streams, computed)
