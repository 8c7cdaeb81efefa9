"""Errors in a join's condition, window or query text, raised before any row is read."""

from __future__ import annotations


class PredicateError(ValueError):
    """A join condition that cannot run; the message quotes the faulty part and says what to write."""


class WindowError(ValueError):
    """A window that is invalid, or does not fit the type of the event time."""


class DurationError(WindowError):
    """A duration that cannot be parsed, or does not fit the type of the event time."""


class UnboundedStateWarning(UserWarning):
    """A join keeps rows for ever; the message says how much memory that takes."""


class JoinError(ValueError):
    """An error in the description of a join: its streams, columns or settings."""


class NoWindowError(JoinError):
    """A join that has no window, and no condition that implies one."""


class QueryError(PredicateError):
    """SQL text that cannot be parsed; ``line`` and ``column`` (from 1) give the place, if known.

    The message ends with the offending line and a caret below the place.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[type[QueryError], tuple[str, int | None, int | None]]:
        return (type(self), (str(self), self.line, self.column))


def at_place(message: str, text: str, offset: int | None) -> QueryError:
    """The error for ``message`` at ``offset`` characters into ``text``, with a caret line."""
    if offset is None or not 0 <= offset <= len(text):
        return QueryError(message)
    line_start = text.rfind("\n", 0, offset) + 1
    line_end = text.find("\n", offset)
    shown = text[line_start : line_end if line_end >= 0 else len(text)]
    line, column = text.count("\n", 0, offset) + 1, offset - line_start + 1
    caret = "".join("\t" if char == "\t" else " " for char in shown[: column - 1]) + "^"
    place = f"line {line}, column {column}"
    return QueryError(f"{message} ({place})\n  {shown}\n  {caret}", line, column)
