"""Families of values, and which of them can be compared, added or scaled.

The families are integers (booleans are 0 and 1), floats, decimals, strings, binary, five kinds of time, and three of
composed values: lists, structs, and intervals of months, days and nanoseconds. Values of one family compare with each
other, integers also with floats and decimals, dates also with timestamps without a zone. A null that is written belongs
to every family. Anything else needs an explicit cast: its meaning would be a guess, and a guess is not exact.
"""

from __future__ import annotations

from typing import Literal as Choice

Family = Choice[
    "integer",
    "float",
    "decimal",
    "string",
    "binary",
    "timestamp",
    "zoned timestamp",
    "date",
    "time of day",
    "duration",
    "list",
    "struct",
    "interval",
    "null",
]

NUMBERS: tuple[Family, ...] = ("integer", "float", "decimal")
TEXTS: tuple[Family, ...] = ("string", "binary")
INSTANTS: tuple[Family, ...] = ("timestamp", "zoned timestamp", "date")
TIMES: tuple[Family, ...] = (*INSTANTS, "time of day", "duration")
COMPOSED: tuple[Family, ...] = ("list", "struct", "interval")
"""Families whose values compare by an encoding that keeps their order (`functions.composed_values`)."""


def comparable(one: Family, other: Family) -> bool:
    """Whether values of two families can be compared."""
    if "null" in (one, other):
        return True
    if one in NUMBERS and other in NUMBERS:
        return {one, other} != {"float", "decimal"}
    return one == other or {one, other} == {"timestamp", "date"}


def combined(one: Family, operator: str, other: Family) -> Family | None:
    """The family of ``one + other`` or ``one - other``; None if it is undefined."""
    if one in NUMBERS and other in NUMBERS:
        if not comparable(one, other):
            return None
        return next((family for family in ("float", "decimal") if family in (one, other)), "integer")
    if one in TIMES and one == other == "duration":
        return "duration"
    if operator == "-" and one in TIMES and comparable(one, other):
        return "duration"
    if one in INSTANTS and other == "duration":
        return "timestamp" if one == "date" else one
    if operator == "+" and one == "duration" and other in INSTANTS:
        return "timestamp" if other == "date" else other
    return None


def scaled(one: Family, operator: str, other: Family) -> Family | None:
    """The family of ``one * other`` or ``one / other``; None if it is undefined."""
    if one in NUMBERS and other in NUMBERS:
        if operator == "/" and one == other == "integer":
            return "float"
        return combined(one, operator, other)
    if operator == "*" and {one, other} == {"duration", "integer"}:
        return "duration"
    return None


def article(family: Family) -> str:
    """The family with its article, for messages."""
    return f"an {family}" if family[0] in "aeiou" else f"a {family}"
