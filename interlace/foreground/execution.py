"""Runs a topology in this process: rows of files in, results out, until both have ended."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from interlace.foreground.feeding import Feeding
from interlace.foreground.inputs import InputRows
from interlace.foreground.notes import Notes
from interlace.foreground.output import Output
from topology import Handle, Reading

LOOK_SECONDS = 0.1
"""How often the progress is shown."""

ROUTER = "router"
"""The component of a join that takes each row once, when its turn has come."""

LATE = {
    "rejected": "have no event time",
    "late_out_of_order": "are further out of order than the bound",
}
"""What the gate of a join counts, in words."""


def execute(
    launch: Callable[[], Handle], inputs: Sequence[InputRows], output: Output, notes: Notes, sink: str | None = None
) -> None:
    """Look at the inputs, launch a topology, feed it and write its results; they end early where enough were read."""
    logging.getLogger("interlace").addHandler(logging.NullHandler())  # the notes below say it in fewer words
    with tempfile.TemporaryDirectory(prefix="interlace-") as directory, output:
        feeds = {rows.stream: rows.batches(notes, directory) for rows in inputs}
        totals = [rows.table.rows for rows in inputs]
        total = sum(filter(None, totals)) if totals and None not in totals else None
        sent: list[int] = []
        with launch() as running:
            for rows in inputs:
                running.pin(rows.stream, rows.columns)
            event_times = {rows.stream: rows.event_time for rows in inputs}
            with (
                notes.work("joining" if len(inputs) else "running", total) as show,
                Feeding(running, feeds, event_times, sent.append) as feeding,
            ):
                reading = running.open_reader(sink, None, False)
                schema = running.sink_schema(sink or running.topology.main_sink or "")
                complete = _read(
                    reading, schema, output, lambda: show(_passed(running, sent), f"{output.rows:,} results")
                )
                feeding.is_wanted = complete
                if not complete:
                    running.stop()
            if complete:
                _tell_late_rows(running, notes)
        output.conclude(notes, complete)


def _read(reading: Reading, schema: pa.Schema | None, output: Output, tick: Callable[[], None]) -> bool:
    """Write all results, or as many as are wanted; whether those are all."""
    began = schema is not None
    if schema is not None:
        output.begin(schema)
    shown = 0.0
    try:
        while not output.is_full:
            found = reading.next(LOOK_SECONDS)
            if time.monotonic() - shown > LOOK_SECONDS:
                shown = time.monotonic()
                tick()
            if found is not None:
                first, batch = found
                if not began:
                    began = True
                    output.begin(batch.schema)
                output.take(batch if schema is None or batch.schema.equals(schema) else batch.cast(schema))
                reading.acknowledge(first + batch.num_rows - 1)
            elif reading.finished:
                if not began:
                    output.begin(pa.schema([]))
                return True
        return False
    finally:
        reading.close()


def _passed(running: Handle, sent: Sequence[int]) -> int:
    """How many rows the topology has worked on; a join has worked on those that its router has taken."""
    taken = running.metrics().of(ROUTER)
    return sum(task.rows_in for task in taken) if taken else sum(sent)


def _tell_late_rows(running: Handle, notes: Notes) -> None:
    metrics = running.metrics()
    for counter, reason in LATE.items():
        count = int(metrics.total(counter))
        if count:
            notes.say(f"{count:,} rows {reason} and take no part in the join")
