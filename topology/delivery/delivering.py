"""Brings the results of a sink to a store, from where the store stands."""

from __future__ import annotations

from topology.delivery.result_store import ResultStore
from topology.handle.handle import Handle


def deliver(running: Handle, store: ResultStore, sink: str | None = None, timeout: float | None = None) -> int:
    """Store the results of a sink, and acknowledge them when they are stored; return how many rows are stored.

    It ends when the results do, or when none has come for `timeout` seconds. Called again, in this program or in the
    next, it goes on where the store is.
    """
    stored = store.next_number()
    results = running.results(sink, timeout, after=stored - 1, numbered=True, take_over=True)
    for first, rows in results:
        store.store(first, rows)
        stored = first + rows.num_rows
        if rows.num_rows:
            running.acknowledge(stored - 1, sink)
    if results.finished:
        store.finish()
    return stored
