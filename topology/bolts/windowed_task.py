"""Bolts that see all rows of a window at once, when event time has passed its end.

Rows wait in the task until all their windows are complete. The code is called once for each window and key, with its
rows in the order of event time. Rows that come when all their windows are complete leave on the side output `late`, as
they are, and so do rows without an event time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from topology.bolts.returned_rows import ReturnedRows
from topology.bolts.row_groups import key_codes, key_value
from topology.bolts.user_task import UserTask
from topology.bolts.windows import Window, Windowing
from topology.graph.components import Emit, Origin
from topology.graph.event_time import check_event_time, event_times
from topology.graph.messages import Batch, Time

LATE = "late"


class WindowedTask(UserTask):
    """Calls `execute(window, rows)` for each window that is complete."""

    def __init__(
        self, component: str, code: Any, returned: ReturnedRows, windowing: Windowing, key: Sequence[str]
    ) -> None:
        super().__init__(component, code, returned)
        self._windowing = windowing
        self._key = key
        self._held: list[pa.RecordBatch] = []
        self._time: Time | None = None
        self._next_end: Time | None = None
        self._late = 0
        self._kind: pa.DataType | None = None
        self._spans: tuple[Time, ...] = ()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        rows = batch.rows
        self._learn(rows.schema)
        times, valid = event_times(rows.column(self._windowing.column))
        late = np.zeros(len(times), dtype=np.bool_) if valid is None else ~valid
        if self._time is not None:
            late |= self._windowing.is_late(times, self._spans, self._time)
        if late.any():
            left_out = rows.filter(pa.array(late))
            self._late += left_out.num_rows
            yield Emit(Batch(LATE, left_out, first=self._late - left_out.num_rows, born=batch.born))
            rows, times = rows.filter(pa.array(~late)), times[~late]
        if rows.num_rows:
            self._held.append(rows)
            end = self._windowing.earliest_end(times.min().item(), self._spans, self._time)
            self._next_end = end if self._next_end is None else min(self._next_end, end)

    def on_event_time(self, time: Time) -> Iterator[Emit]:
        if self._time is not None and time <= self._time:
            return  # after a restore, time is told again from its start
        if self._next_end is not None and self._next_end <= time:
            yield from self._fire(time)
        self._time = time
        yield from super().on_event_time(time)

    def on_end(self) -> Iterator[Emit]:
        yield from self._fire(None)
        yield from super().on_end()

    def metrics(self) -> Mapping[str, float]:
        held = sum(rows.num_rows for rows in self._held)
        return {"late_rows": float(self._late), "held_rows": float(held), **super().metrics()}

    def own_state(self) -> dict[str, Any]:
        rows = [pa.Table.from_batches(self._held)] if self._held else []
        return {"rows": rows, "time": self._time, "next_end": self._next_end, "late": self._late}

    def go_on(self, state: dict[str, Any]) -> None:
        self._held = [batch for table in state["rows"] for batch in table.to_batches()]
        self._time, self._next_end, self._late = state["time"], state["next_end"], state["late"]
        if self._held:
            self._learn(self._held[0].schema)

    def check_invariants(self) -> None:
        # rows are held exactly as long as a window of theirs has an end to come
        assert bool(self._held) == (self._next_end is not None)
        # no window that is complete is left
        assert self._next_end is None or self._time is None or self._next_end > self._time

    def _learn(self, schema: pa.Schema) -> None:
        if self._kind is None:
            check_event_time(self.component, schema, self._windowing.column, what="bolt")
            self._kind = schema.field(self._windowing.column).type
            self._spans = self._windowing.in_unit(self._kind)

    def _fire(self, until: Time | None) -> Iterator[Emit]:
        """Give all windows that are complete to the code; keep the rows of the others, sorted."""
        if not self._held:
            return
        rows = pa.Table.from_batches(self._held).combine_chunks()
        times, _ = event_times(rows.column(self._windowing.column).combine_chunks())
        order = np.argsort(times, kind="stable")
        rows, times = rows.take(pa.array(order)), times[order]
        codes = key_codes(self.component, rows, self._key)
        for window in self._windowing.complete(times, codes, self._spans, self._time, until):
            key = key_value(rows, self._key, int(window.rows[0]))
            shown = Window(self._shown(window.start), self._shown(window.end), key)
            members = rows.take(pa.array(window.rows)).combine_chunks().to_batches()[0]
            yield from self.returned.emits(self.code.execute(shown, members))
        self._held, self._next_end = [], None
        if until is None:
            return
        kept, self._next_end = self._windowing.needed(times, codes, self._spans, until)
        if self._next_end is not None:
            self._held = rows.filter(pa.array(kept)).combine_chunks().to_batches()

    def _shown(self, time: Time) -> Any:
        if self._kind is None or pa.types.is_integer(self._kind) or pa.types.is_floating(self._kind):
            return time
        return pa.scalar(time, self._kind)
