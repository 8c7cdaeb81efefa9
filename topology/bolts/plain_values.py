"""Plain values as bytes and back, exactly: the state of a bolt as it is kept.

JSON holds numbers, text, lists and dicts with text keys. All other values become an object with one member, whose name
begins with `$`. Nothing is pickled: reading a state runs no code.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from topology.graph.errors import NoSnapshotError

PLAIN = (
    "None, bool, int, float, str, bytes, Decimal, dates and times, numpy arrays and numbers, Arrow tables and record "
    "batches, and lists, tuples, sets, deques, dicts and Counters of these"
)


def to_bytes(value: object, what: str) -> bytes:
    """Write a value; raises a `NoSnapshotError` that begins with `what` if a part of it is not plain."""
    return json.dumps(_written(value, what), allow_nan=False, separators=(",", ":")).encode()


def from_bytes(data: bytes) -> Any:
    """Read what `to_bytes` has written."""
    return _read(json.loads(data))


def _written(value: object, what: str) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):  # type: ignore[arg-type]
        return value
    if kind is list:
        return [_written(each, what) for each in value]  # type: ignore[attr-defined]
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):  # type: ignore[attr-defined]
            return {key: _written(each, what) for key, each in value.items()}  # type: ignore[attr-defined]
        return {"$dict": _pairs(value, what)}
    for name, (of, write, _) in _KINDS.items():
        if kind is of:
            return {name: write(value, what)}
    if isinstance(value, np.generic):
        return {"$number": _array_parts(np.asarray(value), what)}
    raise NoSnapshotError(
        f"{what} holds a {kind.__name__}, which cannot be kept: use {PLAIN}, or write snapshot and restore"
    )


def _read(written: Any) -> Any:
    if isinstance(written, list):
        return [_read(each) for each in written]
    if not isinstance(written, dict):
        return written
    name = next(iter(written), "")
    if not name.startswith("$"):
        return {key: _read(each) for key, each in written.items()}
    if name == "$dict":
        return dict(_read_pairs(written[name]))
    if name == "$number":
        return _array(written[name])[()]
    return _KINDS[name][2](written[name])


def _pairs(value: Any, what: str) -> list[Any]:
    return [[_written(key, what), _written(each, what)] for key, each in value.items()]


def _read_pairs(written: list[Any]) -> list[tuple[Any, Any]]:
    return [(_read(key), _read(each)) for key, each in written]


def _items(value: Any, what: str) -> list[Any]:
    return [_written(each, what) for each in value]


def _sorted_items(value: Any, what: str) -> list[Any]:
    return sorted((_written(each, what) for each in value), key=json.dumps)  # one state, one text


def _defaultdict(value: Any, what: str) -> list[Any]:
    factory = value.default_factory
    names: dict[Any, str] = {None: "", **{kind: name for name, kind in _FACTORIES.items()}}
    if factory not in names:
        raise NoSnapshotError(
            f"{what} holds a defaultdict of {factory!r}, which cannot be kept: use one of {list(_FACTORIES)}"
        )
    return [names[factory], _pairs(value, what)]


def _read_defaultdict(written: Any) -> Any:
    return defaultdict(_FACTORIES.get(written[0]), _read_pairs(written[1]))


def _datetime(written: list[Any]) -> datetime.datetime:
    return datetime.datetime.fromisoformat(written[0]).replace(fold=written[1])


def _time(written: list[Any]) -> datetime.time:
    return datetime.time.fromisoformat(written[0]).replace(fold=written[1])


def _array_parts(value: Any, what: str) -> list[Any]:
    if value.dtype.hasobject or value.dtype.names is not None:
        raise NoSnapshotError(f"{what} holds an array of {value.dtype}, which cannot be kept: use a list")
    return [value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]


def _array(written: list[Any]) -> Any:
    dtype, shape, data = written
    return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()


def _rows_text(rows: pa.RecordBatch | pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return base64.b64encode(sink.getvalue()).decode()


def _table(written: str) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(written)).read_all()


def _batch(written: str) -> pa.RecordBatch:
    return pa.ipc.open_stream(base64.b64decode(written)).read_next_batch()


_FACTORIES: dict[str, Callable[[], Any]] = {
    "int": int,
    "float": float,
    "list": list,
    "dict": dict,
    "set": set,
    "str": str,
}
_KINDS: dict[str, tuple[type, Callable[[Any, str], Any], Callable[[Any], Any]]] = {
    "$float": (float, lambda value, what: repr(value), lambda text: math.nan if text == "nan" else float(text)),
    "$bytes": (bytes, lambda value, what: base64.b64encode(value).decode(), base64.b64decode),
    "$tuple": (tuple, _items, lambda written: tuple(map(_read, written))),
    "$deque": (
        deque,
        lambda value, what: [value.maxlen, _items(value, what)],
        lambda written: deque(map(_read, written[1]), written[0]),
    ),
    "$set": (set, _sorted_items, lambda written: set(map(_read, written))),
    "$frozenset": (frozenset, _sorted_items, lambda written: frozenset(map(_read, written))),
    "$counter": (Counter, _pairs, lambda written: Counter(dict(_read_pairs(written)))),
    "$defaultdict": (defaultdict, _defaultdict, _read_defaultdict),
    "$decimal": (Decimal, lambda value, what: str(value), Decimal),
    "$datetime": (datetime.datetime, lambda value, what: [value.isoformat(), value.fold], _datetime),
    "$date": (datetime.date, lambda value, what: value.isoformat(), datetime.date.fromisoformat),
    "$time": (datetime.time, lambda value, what: [value.isoformat(), value.fold], _time),
    "$timedelta": (
        datetime.timedelta,
        lambda value, what: [value.days, value.seconds, value.microseconds],
        lambda written: datetime.timedelta(*written),
    ),
    "$array": (np.ndarray, _array_parts, _array),
    "$batch": (pa.RecordBatch, lambda value, what: _rows_text(value), _batch),
    "$table": (pa.Table, lambda value, what: _rows_text(value), _table),
}
"""Each kind that JSON has not: its class, how it is written, how it is read."""
