"""What each built-in function means (docs/semantics.md, Functions), for one row, in plain Python.

Arguments are ints (booleans too), floats, Fractions for decimals, str, bytes, dates and datetimes, lists, dicts, and
None for null and NaN. Written from the law, not from the implementation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

_LEAST, _MOST = -(2**63), 2**63 - 1


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Null where an argument is null."""
    return lambda *values: None if any(value is None for value in values) else function(*values)


def fits(number: int) -> int | None:
    """An integer of 64 bits, or null."""
    return number if _LEAST <= number <= _MOST else None


def number_or_null(value: float) -> float | None:
    return None if math.isnan(value) else value


def half_away(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2)) if value >= 0 else -math.floor(-value + Fraction(1, 2))


def rounded(value: Any, digits: int = 0) -> Any:
    if isinstance(value, float):
        if math.isinf(value):
            return value
        moved = value * 10.0**digits if digits >= 0 else value / 10.0**-digits
        if math.isinf(moved):
            return value
        whole = math.copysign(float(half_away(Fraction(abs(moved)))), moved)
        # the sum of a large odd number and a half is itself rounded in float64
        whole = math.copysign(math.floor(abs(moved) + 0.5), moved) if abs(moved) >= 2**52 else whole
        return whole / 10.0**digits if digits >= 0 else whole * 10.0**-digits
    if isinstance(value, int):
        return value if digits >= 0 else fits(half_away(Fraction(value, 10**-digits)) * 10**-digits)
    return Fraction(half_away(value * Fraction(10) ** digits)) / Fraction(10) ** digits


def truncated(value: Any, digits: int = 0) -> Any:
    if isinstance(value, float):
        moved = value * 10.0**digits if digits >= 0 else value / 10.0**-digits
        if math.isinf(moved):
            return value
        return math.trunc(moved) / 10.0**digits if digits >= 0 else math.trunc(moved) * 10.0**-digits
    if isinstance(value, int):
        return value if digits >= 0 else int(Fraction(value, 10**-digits)) * 10**-digits
    return Fraction(int(value * Fraction(10) ** digits)) / Fraction(10) ** digits


def whole(pick: Callable[[Any], int]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isinf(value) else float(pick(value))
        return Fraction(pick(value)) if isinstance(value, Fraction) else pick(value)

    return run


def floating(compute: Callable[..., float]) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        try:
            return number_or_null(compute(*map(float, values)))
        except OverflowError:
            return math.inf
        except ValueError:
            return None

    return run


def logarithm(compute: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: -math.inf if value == 0 else compute(value)


def power(base: float, exponent: float) -> float:
    try:
        found = base**exponent
    except ZeroDivisionError:
        return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf
    return math.nan if isinstance(found, complex) else found


def remainder(one: Any, other: Any) -> Any:
    if other == 0:
        return None
    if isinstance(one, float) or isinstance(other, float):
        return None if math.isinf(one) else math.fmod(one, other)
    left = abs(one) % abs(other)
    return -left if one < 0 else left


def quotient(one: int, other: int) -> int | None:
    return None if other == 0 else fits(int(Fraction(one, other)))


def shifted_up(one: int, places: int) -> int | None:
    return fits(one << places) if 0 <= places < 64 else None


def shifted_down(one: int, places: int) -> int | None:
    return one >> places if 0 <= places < 64 else None


def substring(text: str, start: int, length: int | None = None) -> str:
    """The characters at the places start, start + 1, ..; places run from 1, and from -1 backwards from the end."""
    first = start if start >= 0 else len(text) + start + 1
    last = len(text) if length is None else first + length - 1
    return "".join(character for place, character in enumerate(text, 1) if first <= place <= last)


def left(text: str, count: int) -> str:
    return text[: max(len(text) + count, 0)] if count < 0 else text[:count]


def right(text: str, count: int) -> str:
    return text[min(-count, len(text)) :] if count < 0 else text[max(len(text) - count, 0) :]


def padded(text: str, width: int, filling: str = " ", *, start: bool) -> str:
    width = max(width, 0)
    if len(text) >= width or not filling:
        return text[:width]
    added = (filling * width)[: width - len(text)]
    return added + text if start else text + added


def like(text: str, pattern: str, escape: str | None = None) -> bool:
    """One character of the pattern after the other."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if escape and first == escape and rest:
        return text[:1] == rest[0] and like(text[1:], rest[1:], escape)
    if first == "%":
        return any(like(text[start:], rest, escape) for start in range(len(text) + 1))
    return bool(text) and (first == "_" or first == text[0]) and like(text[1:], rest, escape)


def moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def part(name: str, value: Any) -> int:
    at = moment(value)
    day = at.date()
    found: dict[str, Callable[[], int]] = {
        "year": lambda: at.year, "quarter": lambda: (at.month + 2) // 3, "month": lambda: at.month,
        "week": lambda: day.isocalendar().week, "day": lambda: at.day, "dow": lambda: day.isoweekday() % 7,
        "isodow": day.isoweekday, "doy": lambda: (day - date(at.year, 1, 1)).days + 1,
        "isoyear": lambda: day.isocalendar().year, "hour": lambda: at.hour, "minute": lambda: at.minute,
        "second": lambda: at.second, "millisecond": lambda: at.second * 1000 + at.microsecond // 1000,
        "microsecond": lambda: at.second * 10**6 + at.microsecond,
        "epoch": lambda: (at - datetime(1970, 1, 1)) // timedelta(seconds=1),
    }  # fmt: skip
    return found[name]()


def start_of(unit: str, value: Any) -> datetime:
    at = moment(value)
    if unit == "week":
        return datetime(at.year, at.month, at.day) - timedelta(days=at.weekday())
    if unit == "quarter":
        return datetime(at.year, (at.month - 1) // 3 * 3 + 1, 1)
    fields = ["year", "month", "day", "hour", "minute", "second"]
    kept = fields[: fields.index(unit) + 1]
    found = [getattr(at, name) if name in kept else int(name in ("month", "day")) for name in fields]
    return datetime(*found)  # type: ignore[arg-type]


def ends_between(unit: str, one: Any, other: Any) -> int:
    """How many starts of the unit lie after one, up to the other."""
    first, last = start_of(unit, one), start_of(unit, other)
    if unit in ("year", "quarter", "month"):
        months = (last.year - first.year) * 12 + last.month - first.month
        return months // {"year": 12, "quarter": 3, "month": 1}[unit]
    length = {"week": 7 * 86_400, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}[unit]
    return (last - first) // timedelta(seconds=length)


def months_later(value: Any, months: int) -> Any:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    last = (following - timedelta(days=1)).day
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def element(values: list[Any], place: int) -> Any:
    if place == 0 or abs(place) > len(values):
        return None
    return values[place - 1] if place > 0 else values[place]


def extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: pick([value for value in values if value is not None], default=None)


def case(*arguments: Any) -> Any:
    for when, then in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
        if when:
            return then
    return arguments[-1]


_STRICT: dict[str, Callable[..., Any]] = {
    "round": rounded, "trunc": truncated, "floor": whole(math.floor), "ceil": whole(math.ceil),
    "sign": lambda value: (value > 0) - (value < 0), "sqrt": floating(math.sqrt), "exp": floating(math.exp),
    "ln": floating(logarithm(math.log)), "log10": floating(logarithm(math.log10)),
    "log2": floating(logarithm(math.log2)), "power": floating(power), "%": remainder, "div": quotient,
    "&": lambda x, y: x & y, "|": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "~": lambda x: ~x,
    "<<": shifted_up, ">>": shifted_down,
    "lower": str.lower, "upper": str.upper, "length": len, "reverse": lambda text: text[::-1],
    "octet_length": lambda text: len(text.encode() if isinstance(text, str) else text),
    "trim": lambda text, cut=" ": text.strip(cut) if cut else text,
    "ltrim": lambda text, cut=" ": text.lstrip(cut) if cut else text,
    "rtrim": lambda text, cut=" ": text.rstrip(cut) if cut else text,
    "substring": substring, "left": left, "right": right,
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "strpos": lambda text, sought: text.find(sought) + 1,
    "lpad": lambda text, width, filling=" ": padded(text, width, filling, start=True),
    "rpad": lambda text, width, filling=" ": padded(text, width, filling, start=False),
    "repeat": lambda text, count: text * max(count, 0),
    "starts_with": str.startswith, "ends_with": str.endswith, "contains": lambda text, sought: sought in text,
    "like": like, "ilike": lambda text, *pattern: like(text.lower(), *map(str.lower, pattern)),
    "regexp_matches": lambda text, pattern: re.search(pattern, text) is not None,
    "||": lambda one, other: one + other,
    "date_part": part, "date_trunc": start_of, "date_diff": ends_between, "add_months": months_later,
    **{name: partial(part, name) for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second",
                                              "dow", "isodow", "doy", "epoch")},
    "struct_field": lambda struct, name: struct[name], "list_element": element,
    "list_contains": lambda values, sought: sought in [value for value in values if value is not None],
}  # fmt: skip
"""Functions that are null where an argument is."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "greatest": extreme(max),
    "least": extreme(min),
    "case": case,
    "list_value": lambda *values: list(values),
    "concat": lambda *values: "".join(value for value in values if value is not None),
    **{name: strict(function) for name, function in _STRICT.items()},
}
"""Every built-in function by its name in the table."""
