"""Brings the event times of finite inputs to one unit: timestamps in seconds beside timestamps in milliseconds.

`collect` knows the types of all inputs before the first row, so it casts the coarser column and casts it back in the
results: nobody sees it. A running join may have put rows of one stream in order before it knows the type of the other;
it refuses other units, and says which cast to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from operators.feeding import Feed
from operators.resolved_join import ResolvedJoin
from topology import SchemaError

_UNITS = ("s", "ms", "us", "ns")


def in_one_unit(join: ResolvedJoin, feeds: list[Feed]) -> list[Feed]:
    """The feeds with event times in the finest unit that one of them has, if all are timestamps alike but for it."""
    kinds = [_kind(join, feed) for feed in feeds]
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(feeds) or len({kind.unit for kind in known}) < 2 or len({kind.tz for kind in known}) > 1:
        return feeds
    finest = max((kind.unit for kind in known), key=_UNITS.index)
    return [_cast(join, feed, pa.timestamp(finest, kind.tz)) for feed, kind in zip(feeds, known, strict=True)]


def _kind(join: ResolvedJoin, feed: Feed) -> pa.DataType | None:
    """The type of a feed's event times, if it is known and a timestamp."""
    column = join.event_times.get(feed.stream)
    if column is None or feed.schema is None or column not in feed.schema.names:
        return None
    kind = feed.schema.field(column).type
    return kind if pa.types.is_timestamp(kind) else None


def _cast(join: ResolvedJoin, feed: Feed, kind: pa.DataType) -> Feed:
    assert feed.schema is not None, "a feed whose event times are known has a schema"
    column = join.event_times[feed.stream]
    place = feed.schema.get_field_index(column)
    schema = feed.schema.set(place, feed.schema.field(place).with_type(kind))
    return feed if schema == feed.schema else replace(feed, schema=schema, batches=_cast_all(feed, schema))


def _cast_all(feed: Feed, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in feed.batches:
        try:
            yield batch.cast(schema)
        except pa.ArrowInvalid as error:
            raise SchemaError(
                f"stream '{feed.stream}': its event times do not fit the unit of the other stream: {error}"
            ) from error
