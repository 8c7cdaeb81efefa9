"""Puts bounded rows into the order of their event time, before they are sent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from operators.values.takeable_types import take_rows
from topology import check_event_time, event_times


def in_time_order(stream: str, table: pa.Table, column: str) -> pa.Table:
    """Return a table sorted by its event-time column; rows of equal time keep their order.

    Rows without an event time come anywhere: they take no part in a join. Raises a `SchemaError` if the column is
    missing or cannot be a time.
    """
    check_event_time(stream, table.schema, column)
    if table.schema.names.count(column) > 1:
        return table  # refused where it is sent
    times, valid = event_times(table[column].combine_chunks())
    known = times if valid is None else times[valid]
    if (known[1:] >= known[:-1]).all():
        return table
    order = np.argsort(times, kind="stable")
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return pa.Table.from_batches([take_rows(batches[0], order)])
    return table.take(order)  # more text than fits one batch
