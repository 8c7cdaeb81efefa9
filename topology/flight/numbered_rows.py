"""Results of a sink by number, at the client's end of an exchange that acknowledges nothing.

Rows are taken from the connection as they are asked for, so flow control bounds what is in memory however many results
there are. `FlightReading` takes them in ahead, because there the sink bounds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from topology.flight.exchanges import Exchanges
from topology.flight.reading import numbered_chunk
from topology.graph.errors import ConnectionLostError


def numbered_rows(
    exchanges: Exchanges, options: Any, sink: str, first: int, end: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows from number `first` up to and without `end`; None: until the last that comes."""
    if end is not None and first >= end:
        return
    following = first
    exchange = exchanges.begin(options, "rows", sink, str(first), *([] if end is None else [str(end)]))
    try:
        while True:
            with exchanges.calling():
                try:
                    chunk = exchange.reader.read_chunk()
                except StopIteration:
                    break
            if chunk.data is None:
                continue
            number, rows = numbered_chunk(chunk)
            if number != following:
                raise ConnectionLostError(f"sink '{sink}': result {following} was expected, and {number} came")
            following += rows.num_rows
            yield rows
    finally:
        exchange.close()
    if end is not None and following < end:
        raise ConnectionLostError(f"sink '{sink}': the results ended at {following} instead of {end}")
