"""Intervals in SQL text: ``(start, end)``, ``(start, INTERVAL '5' MINUTE)``, and SQL:2011's ``PERIOD (start, end)``."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from operators.sql.row_values import parts_of_row
from operators.sql.text import match_name

FORMS = (
    "write (R.start, R.end) OVERLAPS (S.start, S.end), (R.start, R.end) CONTAINS (S.start, S.end) or "
    "(R.start, R.end) CONTAINS S.ts"
)


def is_interval(node: exp.Expression, functions: Mapping[str, object]) -> bool:
    """Whether several values are written, or a PERIOD; `functions`: the user's own."""
    return parts_of_row(node) is not None or _of_period(node, functions) is not None


def ends_of_interval(
    node: exp.Expression, functions: Mapping[str, object]
) -> tuple[exp.Expression, exp.Expression] | None:
    """The start and the end of an interval; None for other nodes."""
    parts = parts_of_row(node) or _of_period(node, functions)
    if parts is None or len(parts) != 2:
        return None
    start, end = parts
    return start, exp.Add(this=start.copy(), expression=end) if isinstance(end, exp.Interval) else end


def _of_period(node: exp.Expression, functions: Mapping[str, object]) -> list[exp.Expression] | None:
    """What ``PERIOD (..)`` holds, which sqlglot reads as a call."""
    if not isinstance(node, exp.Anonymous) or str(node.this).upper() != "PERIOD":
        return None
    return None if match_name(str(node.this), tuple(functions)) is not None else list(node.expressions)
