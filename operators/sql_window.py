"""The WINDOW clause of a query: the one part of its text that is no standard SQL.

    WINDOW AS (SLIDE INTERVAL '10' ON '60')                 time, in the event-time column's unit
    WINDOW AS (SLIDE INTERVAL '10' MINUTE ON '60' MINUTE)   time, with units
    WINDOW AS (SLIDE INTERVAL 'D' ON 'W')                   time, from parameters D and W
    WINDOW AS (SLIDE ROWS 10 ON 60)                         the last 60 rows, moved 10 at a time
    WINDOW AS (INTERVAL '60'), WINDOW AS (ROWS 60)          no slide

It is found and cut off before the rest goes to the SQL parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Literal as Choice

from operators.errors import QueryError, at_place

Size = int | float | timedelta
ParameterValue = int | float | timedelta

_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}

_FORMS = (
    "write WINDOW AS (SLIDE INTERVAL '10' ON '60'), with units "
    "(SLIDE INTERVAL '10' MINUTE ON '60' MINUTE), or (SLIDE ROWS 10 ON 60)"
)
_TOKEN = re.compile(
    r"\s*(?:'(?P<quoted>[^']*)'|(?P<word>[A-Za-z_]\w*)|(?P<number>[\d.]+)|(?P<odd>\S))"
)


@dataclass(frozen=True)
class WindowClause:
    """The window a query asks for.

    ``time``: size and slide are numbers in the event-time column's unit, or timedeltas.
    ``rows``: whole numbers of rows. ``slide`` is None where none was written.
    """

    kind: Choice["time", "rows"]
    size: Size
    slide: Size | None = None


def length_of(number: str | int | float, unit: str) -> timedelta | str:
    """``number`` of ``unit`` as a timedelta, or what is wrong with it."""
    name = unit.upper()
    size = _MICROSECONDS.get(name) or _MICROSECONDS.get(name.removesuffix("S"))
    if size is None:
        known = ", ".join(_MICROSECONDS)
        return f"{unit} is not a unit of fixed length: use one of {known}"
    try:
        total = Fraction(number) * size
    except ValueError:
        return f"'{number}' is not a number"
    if total.denominator != 1:
        return f"'{number}' {unit} is not a whole number of microseconds"
    return timedelta(microseconds=int(total))


def cut_window(
    text: str, parameters: Mapping[str, ParameterValue], read: bool = True
) -> tuple[str, WindowClause | None]:
    """The text with its WINDOW clause blanked out (so that places stay), and the clause unless it is not to be read."""
    masked = mask_quotes(text)
    found = list(re.finditer(r"\bWINDOW\s+AS\s*\(", masked, re.IGNORECASE))
    window = None
    used: set[str] = set()
    if found:
        start, inside = found[-1].span()
        end = masked.find(")", inside)
        if end < 0:
            raise at_place("the WINDOW clause is never closed: add a )", text, inside - 1)
        after = re.compile(r"[^\s;]").search(masked, end + 1)
        if after:
            raise at_place("the WINDOW clause comes last in a query", text, after.start())
        if len(found) > 1:
            raise at_place("a query has one WINDOW clause", text, found[0].start())
        window = _Clause(text, inside, end, parameters, used).read() if read else None
        text = text[:start] + " " * (end + 1 - start) + text[end + 1 :]
    unused = sorted(set(parameters) - used)
    if unused:
        raise QueryError(f"the query's window uses no parameter {', '.join(map(repr, unused))}")
    return text, window


def mask_quotes(text: str) -> str:
    """``text`` with quoted parts and comments blanked out, so that words can be searched."""
    quoted = r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/"
    return re.sub(quoted, lambda match: " " * len(match.group()), text, flags=re.DOTALL)


class _Clause:
    """Reads the inside of one clause, token by token."""

    def __init__(
        self,
        text: str,
        start: int,
        end: int,
        parameters: Mapping[str, ParameterValue],
        used: set[str],
    ) -> None:
        self.text = text
        self.parameters = parameters
        self.used = used
        self.tokens: list[tuple[str, str, int]] = []
        while (match := _TOKEN.match(text, start, end)) is not None:
            kind = match.lastgroup or "odd"
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            start = match.end()
        self.tokens.append(("end", "", end))

    def read(self) -> WindowClause:
        slide: Size | None = None
        sliding = self.word("SLIDE")
        rows = self.word("ROWS")
        if not rows and not self.word("INTERVAL"):
            raise self.error(f"a window is an INTERVAL or ROWS: {_FORMS}")
        size = self.amount(rows)
        if sliding:
            if not self.word("ON"):
                raise self.error(f"SLIDE needs the window's size after ON: {_FORMS}")
            slide = size
            self.word("ROWS" if rows else "INTERVAL")
            size = self.amount(rows)
        if self.tokens[0][0] != "end":
            raise self.error(f"unexpected {self.tokens[0][1]!r} in the WINDOW clause: {_FORMS}")
        if isinstance(size, timedelta) != isinstance(slide, timedelta) and slide is not None:
            raise self.error(
                f"the slide is {slide!r} and the size {size!r}: give both a unit, or neither"
            )
        return WindowClause("rows" if rows else "time", size, slide)

    def word(self, word: str) -> bool:
        kind, value, _ = self.tokens[0]
        if kind == "word" and value.upper() == word:
            self.tokens.pop(0)
            return True
        return False

    def amount(self, rows: bool) -> Size:
        kind, value, place = self.tokens[0]
        if kind not in ("quoted", "number", "word"):
            raise self.error(f"a number is missing in the WINDOW clause: {_FORMS}")
        self.tokens.pop(0)
        amount = self.number(value.strip(), place)
        if rows:
            if not isinstance(amount, int):
                raise at_place(f"ROWS takes a whole number, not {amount!r}", self.text, place)
        elif self.tokens[0][0] == "word" and self.tokens[0][1].upper() != "ON":
            _, unit, unit_place = self.tokens.pop(0)
            if isinstance(amount, timedelta):
                raise at_place(f"{value} has a unit already: drop {unit}", self.text, unit_place)
            length = length_of(amount, unit)
            if isinstance(length, str):
                raise at_place(length, self.text, unit_place)
            amount = length
        zero = timedelta(0) if isinstance(amount, timedelta) else 0
        if not amount > zero:  # type: ignore[operator]
            raise at_place(f"a window's size and slide are positive, not {value}", self.text, place)
        return amount

    def number(self, written: str, place: int) -> Size:
        if re.fullmatch(r"\d+", written):
            return int(written)
        if re.fullmatch(r"\d*\.\d+|\d+\.\d*", written):
            return float(written)
        if not re.fullmatch(r"[A-Za-z_]\w*", written):
            raise at_place(f"{written!r} is neither a number nor a parameter", self.text, place)
        if written not in self.parameters:
            raise at_place(
                f"the window's {written!r} has no value: pass "
                f'parameters={{"{written}": ..}} with a number or a datetime.timedelta',
                self.text,
                place,
            )
        self.used.add(written)
        value = self.parameters[written]
        if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
            raise at_place(
                f"parameter {written!r} is {value!r}: pass a number or a datetime.timedelta",
                self.text,
                place,
            )
        return value

    def error(self, message: str) -> QueryError:
        return at_place(message, self.text, self.tokens[0][2])
