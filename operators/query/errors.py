"""The errors a join's condition, window or query text can raise, before any row is read."""

from __future__ import annotations


class PredicateError(ValueError):
    """A join condition that cannot be run; the message names the piece and says what to write."""


class WindowError(ValueError):
    """A window that makes no sense, or does not fit the event time it is used with."""


class DurationError(WindowError):
    """A length of time that cannot be read, or that does not fit the event time it is used with."""


class UnboundedStateWarning(UserWarning):
    """A join remembers rows for ever; the message says what that costs."""


class JoinError(ValueError):
    """A join that is described wrongly: its streams, columns or settings."""


class QueryError(PredicateError):
    """A SQL text that cannot be read; ``line`` and ``column`` (from 1) say where, if known.

    The message ends with the offending line of the text and a caret below the place.
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
