"""Remedies for error messages: what to write instead of a comparison or a sum that the types do not allow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from operators.functions.families import COMPOSED, INSTANTS, NUMBERS, TEXTS, TIMES, Family, article
from operators.values.key_types import KeyType, plain_type


def remedy(columns: Sequence[KeyType], families: set[Family]) -> str:
    """The cast or the constant to write where values of two families cannot be combined."""
    if families & set(COMPOSED):
        return "compare an element, R.list[1], or a field, R.struct.field"
    if len(families) == 1:
        if families & set(TEXTS):
            return "text is compared as it is: add what you need as a column before the join"
        return "times are subtracted from each other, not added; a length of time is added to a time"
    if "duration" in families and families & set(INSTANTS):
        return "compare the difference of two times with it: left - right < INTERVAL '5' MINUTE"
    if "time of day" in families and families & {"timestamp", "zoned timestamp"}:
        clock = next((kind for kind in columns if kind.family == "time of day"), None)
        moment = next((kind for kind in columns if kind.family in ("timestamp", "zoned timestamp")), None)
        if clock is None or moment is None:
            return "write the day as well: TIMESTAMP '2026-01-31 12:00:00'"
        return f"cast {_shown(moment, columns)}: {_cell(moment)}.cast({written_type(clock.arrow)})"
    first = {family: next((kind for kind in columns if kind.family == family), None) for family in families}
    if families == {"decimal", "float"}:
        return _decimal_or_float(columns, first["decimal"], first["float"])
    if families & set(TEXTS):
        return _text(columns, families, first)
    if "zoned timestamp" in families:
        naive = next((kind for kind in columns if kind.family in ("timestamp", "date")), None)
        if naive is not None:
            cell = _cell(naive) + ('.cast("timestamp[us]")' if naive.family == "date" else "")
            return f'give {_shown(naive, columns)} a zone: pc.assume_timezone({cell}, "UTC")'
        if families & {"timestamp", "date"}:
            return "give the time that is written a zone: datetime(.., tzinfo=timezone.utc)"
    temporal = [kind for kind in columns if kind.is_temporal]
    if len(temporal) == 1 and families & set(NUMBERS):
        width = temporal[0].arrow.bit_width
        return f'cast {_shown(temporal[0], columns)} to a number: {_cell(temporal[0])}.cast("int{width}")'
    if temporal and families & set(NUMBERS):
        return "write a length of time: datetime.timedelta(..) or INTERVAL '5' MINUTE"
    if not temporal:
        timed = next((article(family) for family in families if family in TIMES), "a length of time")
        return f"write a plain number instead of {timed.replace('a duration', 'a length of time')}"
    if "time of day" in families:
        return "compare the difference instead: abs(left - right) <= INTERVAL '5' MINUTE"
    return f"cast one column to the type of the other, such as .cast({written_type(columns[-1].arrow)})"


def written_type(arrow: pa.DataType) -> str:
    """A type as the argument of a cast."""
    plain = plain_type(arrow)
    if pa.types.is_decimal(plain):
        return f"pa.{plain}"
    if pa.types.is_timestamp(plain) and plain.tz is not None:
        return f'pa.timestamp("{plain.unit}", "{plain.tz}")'
    return f'"{plain}"'


def _casts(arrow: pa.DataType, target: pa.DataType) -> str | None:
    """Arrow's casts from one type to another, as source text; None if there are none."""
    for casts in ([target], [pa.string(), target], [pa.int64(), target]):
        array = pa.nulls(0, plain_type(arrow))
        try:
            for each in casts:
                array = array.cast(plain_type(each))
        except pa.ArrowNotImplementedError:
            continue
        return "".join(f".cast({written_type(each)})" for each in casts)
    return None


def _shown(kind: KeyType, columns: Sequence[KeyType]) -> str:
    """The name of a column, with its stream if another column has the same name."""
    twice = sum(each.column == kind.column for each in columns) > 1
    return f"{kind.role}.{kind.column}" if twice and kind.role is not None else kind.column


def _cell(kind: KeyType) -> str:
    return f'table["{kind.column}"]'


def _decimal_or_float(columns: Sequence[KeyType], decimal: KeyType | None, float_: KeyType | None) -> str:
    if decimal is None:
        return "write the number without Decimal(..), as a float"
    to_float = f'cast {_shown(decimal, columns)}: {_cell(decimal)}.cast("float64")'
    if float_ is None:
        return to_float
    to_decimal = f"{_cell(float_)}.cast({written_type(decimal.arrow)})"
    return f"{to_float}, or {_shown(float_, columns)}, to stay exact: {to_decimal}"


def _text(columns: Sequence[KeyType], families: set[Family], first: dict[Family, KeyType | None]) -> str:
    if families == {"string", "binary"}:
        if first["string"] is None:
            return "write bytes, such as b'..' or X'..'"
        return f'cast {_shown(first["string"], columns)}: {_cell(first["string"])}.cast("binary")'
    text = next((kind for family, kind in first.items() if family in TEXTS and kind is not None), None)
    other = next((family for family in families if family not in TEXTS), "string")
    if text is None:  # the text is a constant
        if other in TIMES:
            return "write a time, not text: DATE '2026-01-31', TIMESTAMP '2026-01-31 12:00:00' or a datetime"
        if any(pa.types.is_boolean(kind.arrow) for kind in columns):
            return "write TRUE or FALSE without quotes"
        return "write the number without quotes" if other in NUMBERS else "write a string"
    kind = next((kind for kind in columns if kind.family == other), None)
    if kind is None:
        target = "int64" if other == "integer" else "float64"
        return f'cast {_shown(text, columns)}: {_cell(text)}.cast("{target}"), or write the constant in quotes'
    casts = _casts(text.arrow, kind.arrow)
    if casts is None:  # every other type can be cast to text
        return f"cast {_shown(kind, columns)}: {_cell(kind)}{_casts(kind.arrow, text.arrow)}"
    return f"cast {_shown(text, columns)}: {_cell(text)}{casts}"
