"""Record batches as lines of JSON, made column by column."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def json_lines(batch: pa.RecordBatch) -> bytes:
    """One object for each row, each followed by a line break; NaN and infinities, which JSON lacks, are null."""
    if not batch.num_rows:
        return b""
    if not batch.num_columns:
        return b"{}\n" * batch.num_rows
    parts: list[Any] = []
    for number, name in enumerate(batch.schema.names):
        parts += [
            ("{" if number == 0 else ",") + json.dumps(name, ensure_ascii=False) + ":",
            values(batch.column(number)),
        ]
    lines = pc.binary_join_element_wise(*parts, "}\n", "", null_handling="skip")
    return "".join(lines.to_pylist()).encode()


def values(column: pa.Array) -> pa.Array:
    """The JSON text of each value."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        text = column.cast(pa.string())
    elif pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(column), column, None)
        text = finite.cast(pa.float64()).cast(pa.string())
        whole = pc.match_substring_regex(text, r"^-?\d+$")  # 6.0 is read again as a float, 6 would not be
        text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = column.dictionary_encode()  # each text is escaped once
        escaped = [json.dumps(each, ensure_ascii=False) for each in coded.dictionary.to_pylist()]
        text = pa.array(escaped, pa.string()).take(coded.indices)
    else:
        text = pa.array([json.dumps(plain(value), ensure_ascii=False) for value in column.to_pylist()], pa.string())
    return pc.fill_null(text, "null")


def plain(value: Any) -> Any:
    """A value in terms that JSON has: times as in ISO 8601, durations in seconds, decimals and bytes as text."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
    return value
