"""Random values as SQL text, over every form that a query may use, with their meaning for some rows.

A form is written together with what it means (docs/semantics.md): a function of one row for each role, in plain Python.
Null and NaN are None, and so is what is unknown. The functions are those of `tests/oracle_functions.py`; nothing here
comes from the implementation. Pools are small, so that ties, nulls and zeros happen within a few rows.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, Literal

import pyarrow as pa

from tests.oracle_functions import FUNCTIONS, half_away
from tests.oracle_terms import Truth, conjunction, disjunction

Rows = Mapping[str, Mapping[str, Any]]
Kind = Literal["integer", "float", "decimal", "text", "date", "moment", "flag", "list", "struct", "interval"]

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
DAYS = [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 1), date(2023, 12, 31), date(2024, 2, 28)]
MOMENTS = [datetime(2024, 2, 29, 1), datetime(2024, 2, 28, 2, 30), datetime(2024, 1, 31), datetime(2024, 3, 1, 1)]
COLUMNS: dict[str, tuple[Kind, pa.DataType, tuple[Any, ...]]] = {
    "i": ("integer", pa.int64(), (-3, -1, 0, 1, 2, 3)),
    "j": ("integer", pa.uint16(), (0, 1, 2)),
    "x": ("float", pa.float64(), (0.0, -0.0, 0.5, -1.5, 2.0, float("nan"))),
    "p": ("decimal", pa.decimal128(6, 2), (Decimal("1.00"), Decimal("1.25"), Decimal("-0.50"), Decimal("2.05"))),
    "t": ("text", pa.string(), ("", "a", "b", "ab", "Ab", "1", " a", "%")),
    "d": ("date", pa.date32(), tuple(DAYS)),
    "at": ("moment", pa.timestamp("us"), tuple(MOMENTS)),
    "b": ("flag", pa.bool_(), (True, False)),
    "l": ("list", pa.list_(pa.int64()), ([], [1], [1, 2], [None, 2], [2])),
    "st": ("struct", pa.struct([("a", pa.int64()), ("b", pa.string())]),
           ({"a": 1, "b": "a"}, {"a": None, "b": "a"}, {"a": 2, "b": None})),
    "iv": ("interval", pa.month_day_nano_interval(), tuple(map(pa.MonthDayNano, ([1, 0, 0], [0, 30, 0], [0, 1, 0])))),
}  # fmt: skip
"""The columns of every stream: kind, type, values. Beside them are `id`, `f` of float32, and an event time `ts`."""
HUNDREDTHS = pa.float32(), (0.1, 0.25, 2.0)


@dataclass(frozen=True)
class Form:
    """A piece of SQL, and its value for a row of each role."""

    sql: str
    value: Callable[[Rows], Any]

    def truth(self, rows: Rows) -> Truth:
        found = self.value(rows)
        return None if found is None else bool(found)


def table(chance: Random, rows: int, first: int) -> pa.Table:
    """Rows with ids from `first` on and times that do not fall; a tenth of the values is missing."""
    drawn: dict[str, pa.Array] = {"id": pa.array(range(first, first + rows), pa.int64())}
    for name, (_, kind, values) in {**COLUMNS, "f": ("float", *HUNDREDTHS)}.items():
        drawn[name] = pa.array([chance.choice(values) if chance.random() < 0.9 else None for _ in range(rows)], kind)
    drawn["ts"] = pa.array(sorted(chance.choices(range(12), k=rows)), pa.int64())
    return pa.table(drawn)


def column(role: str, name: str) -> Form:
    def value(rows: Rows) -> Any:
        found = rows[role][name]
        if isinstance(found, Decimal):
            return Fraction(found)
        return None if isinstance(found, float) and found != found else found

    return Form(f"{role}.{name}", value)


def applied(sql: str, name: str, *given: Form) -> Form:
    """A built-in function."""
    return computed(sql, FUNCTIONS[name], *given)


def computed(sql: str, compute: Callable[..., Any], *given: Form) -> Form:
    return Form(sql, lambda rows: compute(*[each.value(rows) for each in given]))


def strictly(sql: str, compute: Callable[..., Any], *given: Form) -> Form:
    """As `computed`; null where an argument is."""

    def value(rows: Rows) -> Any:
        values = [each.value(rows) for each in given]
        return None if any(one is None for one in values) else compute(*values)

    return Form(sql, value)


def constant(sql: str, value: Any) -> Form:
    return Form(sql, lambda rows: value)


def ordered(value: Any) -> Any:
    """A value as Python orders it: dates are midnights, null in a list or struct is above everything."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, pa.MonthDayNano):
        return (value.months * 30 + value.days) * 86_400 * 10**9 + value.nanoseconds
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [(each is None, 0 if each is None else ordered(each)) for each in value]
    return value


def compare(op: str, one: Form, other: Form) -> Form:
    return strictly(f"({one.sql} {op} {other.sql})", lambda x, y: OPERATORS[op](ordered(x), ordered(y)), one, other)


def every(parts: Sequence[Form], sql: str = "") -> Form:
    text = sql or f"({' AND '.join(part.sql for part in parts)})"
    return Form(text, lambda rows: conjunction([part.truth(rows) for part in parts]))


def some(parts: Sequence[Form], sql: str = "") -> Form:
    text = sql or f"({' OR '.join(part.sql for part in parts)})"
    return Form(text, lambda rows: disjunction([part.truth(rows) for part in parts]))


def opposite(part: Form, sql: str = "") -> Form:
    return strictly(sql or f"(NOT {part.sql})", operator.not_, part)


class Values:
    """Draws values over the columns of some roles. `depth` is how far they still nest.

    constants: whether a value, or a condition, may name no column.
    """

    def __init__(self, chance: Random, roles: Sequence[str], *, constants: bool = True) -> None:
        self.chance = chance
        self.roles = tuple(roles)
        self.constants = constants

    def condition_of(self, roles: Sequence[str], depth: int) -> Form:
        """A condition for CASE."""
        raise NotImplementedError

    def value(self, kind: Kind, roles: Sequence[str], depth: int) -> Form:
        """A value of a kind over the columns of these roles."""
        if kind == "flag":
            return column(self.chance.choice(roles), "b")
        if depth == 0 or self.chance.random() < 0.4 or kind in ("struct", "interval"):
            names = [name for name, (of, _, _) in COLUMNS.items() if of == kind]
            plain = kind not in ("list", "struct", "interval")
            if plain and self.constants and self.chance.random() < 0.2:
                return self.written(kind)
            return column(self.chance.choice(roles), self.chance.choice(names))
        if self.chance.random() < 0.25:
            return self.chosen(kind, roles, depth)
        drawn: Form = getattr(self, f"_{kind}")(roles, depth - 1)
        return drawn

    def written(self, kind: Kind) -> Form:
        if kind == "integer":
            number = self.chance.choice([-3, -1, 0, 1, 2, 4])
            return constant(str(number), number)
        if kind == "float":
            real = self.chance.choice([0.5, -1.5, 2.0])
            return constant(f"{real!r}", real)
        if kind == "decimal":
            return constant("DECIMAL '1.25'", Fraction("1.25"))
        if kind == "text":
            text = self.chance.choice(["a", "ab", "", "1"])
            return constant(f"'{text}'", text)
        if kind == "date":
            day = self.chance.choice(DAYS)
            return constant(f"DATE '{day}'", day)
        moment = self.chance.choice(MOMENTS)
        return constant(f"TIMESTAMP '{moment}'", moment)

    def chosen(self, kind: Kind, roles: Sequence[str], depth: int) -> Form:
        """What chooses among values: coalesce, CASE, if, nullif, greatest, least."""
        one, other = self.value(kind, roles, depth - 1), self.value(kind, roles, depth - 1)
        names = ["coalesce", "case", "case", "nullif", "if", "null"]
        names += ["greatest", "least"] if kind != "list" else []
        name = self.chance.choice(names)
        if name in ("coalesce", "greatest", "least"):
            return applied(f"{name}({one.sql}, {other.sql})", name, one, other)
        if name == "nullif":
            equal = compare("=", one, other)
            return applied(f"nullif({one.sql}, {other.sql})", "case", equal, constant("", None), one)
        when = self.condition_of(roles, depth)
        if name == "null":
            return applied(f"CASE WHEN {when.sql} THEN {one.sql} END", "case", when, one, constant("", None))
        if name == "if":
            return applied(f"if({when.sql}, {one.sql}, {other.sql})", "case", when, one, other)
        return applied(f"CASE WHEN {when.sql} THEN {one.sql} ELSE {other.sql} END", "case", when, one, other)

    def _integer(self, roles: Sequence[str], depth: int) -> Form:
        shape = self.chance.choice(["arithmetic", "bits", "remainder", "one", "text", "list", "struct", "time", "cast"])
        one = self.value("integer", roles, depth)
        if shape in ("arithmetic", "bits", "remainder"):
            other = self.value("integer", roles, depth)
            signs: dict[str, dict[str, Callable[..., Any]]] = {
                "arithmetic": {"+": operator.add, "-": operator.sub, "*": operator.mul},
                "bits": {name: FUNCTIONS[name] for name in ("&", "|", "<<", ">>")},
                "remainder": {"%": FUNCTIONS["%"], "//": FUNCTIONS["div"]},
            }
            sign = self.chance.choice(list(signs[shape]))
            if sign == "*" and "0" in (one.sql, other.sql):
                sign = "+"  # a factor of 0 is refused: the column would have no effect
            return strictly(f"({one.sql} {sign} {other.sql})", signs[shape][sign], one, other)
        if shape == "one":
            name = self.chance.choice(["abs", "-" if one.sql != "0" else "abs", "~", "sign", "xor", "round"])
            if name == "xor":
                return applied(f"xor({one.sql}, 2)", "xor", one, constant("", 2))
            of_one: dict[str, Callable[..., Any]] = {**FUNCTIONS, "abs": abs, "-": operator.neg, "round": int}
            return strictly(f"({name}({one.sql}))", of_one[name], one)
        if shape == "text":
            text = self.value("text", roles, depth)
            if self.chance.random() < 0.5:
                return applied(f"length({text.sql})", "length", text)
            return applied(f"strpos({text.sql}, 'b')", "strpos", text, constant("", "b"))
        if shape == "list":
            values, place = self.value("list", roles, depth), self.chance.choice([1, 2, -1])
            if self.chance.random() < 0.5:
                return applied(f"len({values.sql})", "length", values)
            if not values.sql.endswith(".l"):
                return applied(f"element_at({values.sql}, {place})", "list_element", values, constant("", place))
            return applied(f"{values.sql}[{place}]", "list_element", values, constant("", place))
        if shape == "struct":
            role = self.chance.choice(roles)
            return applied(f"{role}.st.a", "struct_field", column(role, "st"), constant("", "a"))
        if shape == "time":
            day, part = (
                self.value(self.chance.choice(["date", "moment"]), roles, depth),
                self.chance.choice(["year", "month", "day", "isodow"]),
            )
            if self.chance.random() < 0.3:
                other = self.value("date", roles, depth)
                given = constant("", "month"), day, other
                return applied(f"date_diff('month', {day.sql}, {other.sql})", "date_diff", *given)
            if self.chance.random() < 0.5:
                return applied(f"extract({part} FROM {day.sql})", "date_part", constant("", part), day)
            return applied(f"{part}({day.sql})", part, day)
        name, kind = self.chance.choice(
            [("text", "text"), ("flag", "flag"), ("float", "float"), ("decimal", "decimal")]
        )
        given_: Form = self.value(kind, roles, depth)  # type: ignore[arg-type]
        casts: dict[str, Callable[[Any], Any]] = {
            "text": lambda text: int(text) if re.fullmatch(r"-?\d+", text) else None, "flag": int, "float": round,
            "decimal": half_away,
        }  # fmt: skip
        return strictly(f"CAST({given_.sql} AS BIGINT)", casts[name], given_)

    def _float(self, roles: Sequence[str], depth: int) -> Form:
        shape = self.chance.choice(["arithmetic", "half", "whole", "power", "cast", "sign"])
        one = self.value("float", roles, depth)
        number = self.value("integer", roles, depth)
        if shape == "arithmetic":
            sign = self.chance.choice("+-" if "0" in (one.sql, number.sql) else "+-*")
            compute = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
            other = self.chance.choice([self.value("float", roles, depth), number])
            return strictly(f"({one.sql} {sign} {other.sql})", lambda x, y: compute(float(x), float(y)), one, other)
        if shape == "half":
            return strictly(f"({number.sql} / 2)", lambda x: x / 2, number)
        if shape == "whole":
            name = self.chance.choice(["round", "floor", "ceil", "trunc"])
            return applied(f"{name}({one.sql})", name, one)
        if shape == "power":
            return applied(f"({number.sql} ^ 2)", "power", number, constant("", 2))
        if shape == "cast":
            return strictly(f"CAST({number.sql} AS DOUBLE)", float, number)
        return strictly(f"(-({one.sql}))", operator.neg, one)

    def _decimal(self, roles: Sequence[str], depth: int) -> Form:
        one, number = self.value("decimal", roles, depth), self.value("integer", roles, depth)
        shape = self.chance.choice(["sum", "twice", "round", "whole", "sign"])
        if shape == "sum":
            return strictly(f"({one.sql} + {number.sql})", operator.add, one, number)
        if shape == "twice":
            return strictly(f"({one.sql} * 2 - 0.5)", lambda x: x * 2 - Fraction("0.5"), one)
        if shape == "round":
            return applied(f"round({one.sql}, 1)", "round", one, constant("", 1))
        if shape == "whole":
            name = self.chance.choice(["floor", "ceil"])
            return applied(f"{name}({one.sql})", name, one)
        return strictly(f"abs({one.sql})", abs, one)

    def _text(self, roles: Sequence[str], depth: int) -> Form:
        one, other = self.value("text", roles, depth), self.value("text", roles, depth)
        shape = self.chance.choice(["joined", "of one", "part", "filled", "replace", "cast", "struct"])
        if shape == "joined":
            if self.chance.random() < 0.5:
                return applied(f"concat({one.sql}, {other.sql})", "concat", one, other)
            return applied(f"({one.sql} || {other.sql})", "||", one, other)
        if shape == "of one":
            name = self.chance.choice(["lower", "upper", "reverse", "trim", "ltrim", "rtrim"])
            return applied(f"{name}({one.sql})", name, one)
        if shape == "part":
            if self.chance.random() < 0.5:
                given = one, constant("", 1), constant("", 1)
                return applied(f"substring({one.sql}, 1, 1)", "substring", *given)
            name = self.chance.choice(["left", "right"])
            return applied(f"{name}({one.sql}, 1)", name, one, constant("", 1))
        if shape == "filled":
            if self.chance.random() < 0.5:
                return applied(f"lpad({one.sql}, 3, '*')", "lpad", one, constant("", 3), constant("", "*"))
            return applied(f"repeat({one.sql}, 2)", "repeat", one, constant("", 2))
        if shape == "replace":
            return applied(f"replace({one.sql}, 'a', 'b')", "replace", one, constant("", "a"), constant("", "b"))
        if shape == "struct":
            role = self.chance.choice(roles)
            return applied(f"{role}.st['b']", "struct_field", column(role, "st"), constant("", "b"))
        kind: Kind = self.chance.choice(["integer", "date", "flag"])
        given_ = self.value(kind, roles, depth)
        texts: dict[str, Callable[[Any], str]] = {
            "integer": str, "date": str, "flag": lambda value: str(bool(value)).lower(),
        }  # fmt: skip
        return strictly(f"CAST({given_.sql} AS VARCHAR)", texts[kind], given_)

    def _date(self, roles: Sequence[str], depth: int) -> Form:
        one = self.value("date", roles, depth)
        shape = self.chance.choice(["days", "months", "cast"])
        if shape == "days":
            sign, days = self.chance.choice("+-"), self.chance.choice([1, 30])
            step = timedelta(days=days if sign == "+" else -days)
            return strictly(f"({one.sql} {sign} {days})", lambda day: day + step, one)
        if shape == "months":
            sign, months = self.chance.choice("+-"), self.chance.choice([1, 2, 12])
            given = constant("", months if sign == "+" else -months)
            return applied(f"({one.sql} {sign} INTERVAL '{months}' MONTH)", "add_months", one, given)
        moment = self.value("moment", roles, depth)
        return strictly(f"CAST({moment.sql} AS DATE)", lambda at: at.date(), moment)

    def _moment(self, roles: Sequence[str], depth: int) -> Form:
        one, day = self.value("moment", roles, depth), self.value("date", roles, depth)
        shape = self.chance.choice(["hours", "months", "start", "cast"])
        if shape == "hours":
            sign, hours = self.chance.choice("+-"), self.chance.choice([1, 25])
            step = timedelta(hours=hours if sign == "+" else -hours)
            return strictly(f"({one.sql} {sign} INTERVAL '{hours}' HOUR)", lambda at: at + step, one)
        if shape == "months":
            return applied(f"({one.sql} + INTERVAL '1 month')", "add_months", one, constant("", 1))
        if shape == "start":
            unit = self.chance.choice(["year", "month", "day", "hour"])
            return applied(f"date_trunc('{unit}', {one.sql})", "date_trunc", constant("", unit), one)
        return strictly(f"CAST({day.sql} AS TIMESTAMP)", ordered, day)

    def _list(self, roles: Sequence[str], depth: int) -> Form:
        parts = [self.value("integer", roles, depth) for _ in range(self.chance.randint(1, 2))]
        return computed(f"[{', '.join(part.sql for part in parts)}]", lambda *values: list(values), *parts)
