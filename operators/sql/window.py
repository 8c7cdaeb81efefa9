"""The WINDOW clause of a query: the only part that is not standard SQL.

    WINDOW AS (SLIDE INTERVAL '10' ON '60')                 time, in the event-time column's unit (the paper's form)
    WINDOW AS (SLIDE INTERVAL '10' MINUTE ON '60' MINUTE)   time, with units; also '10 min', '1 h 30 min'
    WINDOW AS (SLIDE INTERVAL 'D' ON 'W')                   time, from parameters D and W
    WINDOW AS (SLIDE ROWS 10 ON 60)                         the last 60 rows, moved 10 at a time
    WINDOW AS (INTERVAL '60'), WINDOW AS (ROWS 60)          no slide
    WINDOW AS (TUMBLE INTERVAL '1 h'), (TUMBLE ROWS 60)     the slide is the size
    WINDOW AS (ROWS 60 PER KEY)                             the last 60 rows of each key; also after SLIDE and TUMBLE
    WINDOW AS (UNBOUNDED)                                   all rows
    WINDOW R AS (ROWS 60), S AS (INTERVAL '10 min')         one for each side

It is cut off before the rest goes to the SQL parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from operators.query.durations import parse_duration
from operators.query.errors import DurationError, QueryError, WindowError, at_place
from operators.query.windows import CountWindow, TimeWindow, UnboundedWindow, Window
from operators.sql.literals import length_of
from operators.sql.text import mask_quotes, match_name

Size = int | float | timedelta
ParameterValue = int | float | timedelta | str

_FORMS = (
    "write (ROWS 60), (INTERVAL '60' MINUTE), (SLIDE INTERVAL '10' MINUTE ON '60' MINUTE), (SLIDE ROWS 10 ON 60), "
    "(TUMBLE ROWS 60), (ROWS 60 PER KEY) or (UNBOUNDED)"
)
_TOKEN = re.compile(r"\s*(?:'(?P<quoted>[^']*)'|(?P<word>[A-Za-z_]\w*)|(?P<number>[\d.]+)|(?P<odd>\S))")
_START = re.compile(r"\bWINDOW\b(?P<role>\s+(?:(?!AS\b)\w+\s+)?)AS\s*\(", re.IGNORECASE)
_NEXT = re.compile(r"\s*,(?P<role>\s*(?:(?!AS\b)\w+\s+)?)AS\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class WrittenWindow:
    """One window of the clause: its side (None: both), and its place in the text."""

    role: str | None
    place: int
    window: Window


def cut_window(
    text: str, parameters: Mapping[str, ParameterValue], read: bool = True
) -> tuple[str, tuple[WrittenWindow, ...]]:
    """The text with its WINDOW clause blanked out, so that places stay valid, and its windows if `read`."""
    masked = mask_quotes(text)
    found = list(_START.finditer(masked))
    windows: list[WrittenWindow] = []
    used: set[str] = set()
    if found:
        if len(found) > 1:
            raise at_place("a query has one WINDOW clause", text, found[0].start())
        opening: re.Match[str] | None = found[0]
        start, end = found[0].start(), -1
        while opening is not None:
            inside, end = opening.end(), masked.find(")", opening.end())
            if end < 0:
                raise at_place("the WINDOW clause is never closed: add a )", text, inside - 1)
            if read:
                role = text[slice(*opening.span("role"))].strip().strip('"`') or None
                window = _Clause(text, inside, end, parameters, used).read()
                windows.append(WrittenWindow(role, opening.start("role") + 1, window))
            opening = _NEXT.match(masked, end + 1)
        after = re.compile(r"[^\s;]").search(masked, end + 1)
        if after:
            raise at_place("the WINDOW clause comes last in a query", text, after.start())
        text = text[:start] + " " * (end + 1 - start) + text[end + 1 :]
    unused = sorted(set(parameters) - used)
    if unused:
        raise QueryError(f"the WINDOW clause does not use the parameter {', '.join(map(repr, unused))}")
    return text, tuple(windows)


def windows_of(written: tuple[WrittenWindow, ...], text: str, roles: tuple[str, ...]) -> tuple[Window, ...] | None:
    """The window of each role; None if the query has none."""
    if not written:
        return None
    if len(written) == 1 and written[0].role is None:
        return (written[0].window,) * len(roles)
    form = "WINDOW " + ", ".join(f"{role} AS (..)" for role in roles)
    found: dict[str, Window] = {}
    for each in written:
        role = None if each.role is None else match_name(each.role, roles)
        if role is None:
            shown = "a window" if each.role is None else f"'{each.role}'"
            raise at_place(f"{shown} names no side of this join: write {form}", text, each.place)
        if role in found:
            raise at_place(f"{role} has a window already: write {form}", text, each.place)
        found[role] = each.window
    missing = next((role for role in roles if role not in found), None)
    if missing is not None:
        raise at_place(f"{missing} has no window: write {form}", text, written[0].place)
    return tuple(found[role] for role in roles)


class _Clause:
    """Parses one window, token by token."""

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

    def read(self) -> Window:
        start = self.tokens[0][2]
        if self.words("UNBOUNDED"):
            self.check_end()
            return UnboundedWindow()
        sliding = self.words("SLIDE")
        tumbling = not sliding and self.words("TUMBLE")
        rows = self.words("ROWS")
        if not rows and not self.words("INTERVAL"):
            raise self.error(f"a window is an INTERVAL or ROWS: {_FORMS}")
        size = self.amount(rows)
        slide = size if tumbling else None
        if sliding:
            if not self.words("ON"):
                raise self.error(f"SLIDE needs the window's size after ON: {_FORMS}")
            slide = size
            self.words("ROWS" if rows else "INTERVAL")
            size = self.amount(rows)
        per_key = self.words("PER", "KEY")
        if per_key and not rows:
            raise self.error("PER KEY counts rows: write ROWS instead of INTERVAL; times are the same for all keys")
        self.check_end()
        if isinstance(size, timedelta) != isinstance(slide, timedelta) and slide is not None:
            raise self.error(f"the slide is {slide!r} and the size {size!r}: give both a unit, or neither")
        try:
            if not rows:
                return TimeWindow(size, slide)
            assert isinstance(size, int)
            assert slide is None or isinstance(slide, int)
            return CountWindow(size, 1 if slide is None else slide, per_key)
        except WindowError as error:
            raise at_place(str(error), self.text, start) from None

    def words(self, *words: str) -> bool:
        if [(kind, value.upper()) for kind, value, _ in self.tokens[: len(words)]] == [("word", w) for w in words]:
            del self.tokens[: len(words)]
            return True
        return False

    def check_end(self) -> None:
        if self.tokens[0][0] != "end":
            raise self.error(f"unexpected {self.tokens[0][1]!r} in the WINDOW clause: {_FORMS}")

    def amount(self, rows: bool) -> Size:
        kind, value, place = self.tokens[0]
        if kind not in ("quoted", "number", "word"):
            raise self.error(f"a number is missing in the WINDOW clause: {_FORMS}")
        self.tokens.pop(0)
        amount = self.number(value.strip(), place)
        if rows:
            if not isinstance(amount, int):
                raise at_place(f"ROWS takes a whole number, not {value}", self.text, place)
        elif self.tokens[0][0] == "word" and self.tokens[0][1].upper() not in ("ON", "PER"):
            _, unit, unit_place = self.tokens.pop(0)
            if isinstance(amount, timedelta):
                raise at_place(f"{value} has a unit already: drop {unit}", self.text, unit_place)
            length = length_of(amount, unit)
            if isinstance(length, str):
                raise at_place(length, self.text, unit_place)
            amount = length
        return amount

    def number(self, written: str, place: int) -> Size:
        if re.fullmatch(r"\d+", written):
            return int(written)
        if re.fullmatch(r"\d*\.\d+|\d+\.\d*", written):
            return float(written)
        if re.fullmatch(r"[A-Za-z_]\w*", written):
            return self.parameter(written, place)
        try:
            return parse_duration(written)
        except DurationError as error:
            raise at_place(str(error), self.text, place) from None

    def parameter(self, name: str, place: int) -> Size:
        remedy = "a number, a datetime.timedelta or text such as '10 min'"
        if name not in self.parameters:
            message = f"the window's '{name}' has no value: pass parameters={{\"{name}\": ..}} with {remedy}"
            raise at_place(message, self.text, place)
        self.used.add(name)
        value = self.parameters[name]
        if isinstance(value, bool) or not isinstance(value, (int, float, timedelta, str)):
            raise at_place(f"parameter '{name}' is {value!r}: pass {remedy}", self.text, place)
        if not isinstance(value, str):
            return value
        try:
            return parse_duration(value)
        except DurationError as error:
            raise at_place(f"parameter '{name}': {error}", self.text, place) from None

    def error(self, message: str) -> QueryError:
        return at_place(message, self.text, self.tokens[0][2])
