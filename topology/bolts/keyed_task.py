"""Bolts with a state for each key, and timers in it.

A batch is divided by key, and the code is called once for each key in it. The grouping must send rows of one key to one
task: use `fields_grouping` with the same columns.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from topology.bolts.returned_rows import ReturnedRows
from topology.bolts.row_groups import KeyValue, groups
from topology.bolts.user_task import UserTask
from topology.graph.components import Emit, Origin
from topology.graph.errors import TopologyError
from topology.graph.messages import Batch, Time


class Key:
    """One key of a keyed bolt, as its code sees it.

    value: the value of the key column; a tuple of values if there are several columns.
    state: a dict of plain values that is kept for this key, and survives failures with the topology. Empty it, and the
           key is forgotten.
    """

    __slots__ = ("_task", "state", "value")

    def __init__(self, value: KeyValue, state: dict[Any, Any], task: KeyedTask) -> None:
        self.value = value
        self.state = state
        self._task = task

    def call_at(self, time: Time) -> None:
        """Have `on_timer(key, time)` called when the watermark has reached an event time; once for each time."""
        self._task.set_timer("on_timer", self.value, time)

    def call_after(self, seconds: float) -> None:
        """Have `on_timeout(key)` called after so many seconds, at the next tick; a later call replaces this one."""
        self._task.set_timeout(self.value, seconds)

    def __repr__(self) -> str:
        return f"Key({self.value!r}, state={self.state!r})"


class KeyedTask(UserTask):
    """Calls `execute(key, rows)` for each key of a batch."""

    def __init__(self, component: str, code: Any, returned: ReturnedRows, key: Sequence[str], ticks: bool) -> None:
        super().__init__(component, code, returned)
        self._key = key
        self._ticks = ticks
        self._states: dict[KeyValue, dict[Any, Any]] = {}
        self._timers: list[tuple[Time, int, KeyValue]] = []
        self._set: set[tuple[Time, KeyValue]] = set()
        self._timeouts: dict[KeyValue, float] = {}
        self._number = itertools.count()
        self._now: float | None = None
        self._waiting: dict[KeyValue, float] = {}

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        for value, rows in groups(self.component, batch.rows, self._key):
            key = self._opened(value)
            yield from self.returned.emits(self.code.execute(key, rows), batch.born)
            self._closed(key)

    def on_event_time(self, time: Time) -> Iterator[Emit]:
        while self._timers and self._timers[0][0] <= time:
            at, _, value = heapq.heappop(self._timers)
            self._set.discard((at, value))
            key = self._opened(value)
            yield from self.returned.emits(self.code.on_timer(key, at))
            self._closed(key)
        yield from super().on_event_time(time)

    def on_tick(self, seconds: float) -> Iterator[Emit]:
        self._now = seconds
        for value, delay in self._waiting.items():
            self._timeouts[value] = seconds + delay
        self._waiting = {}
        due = sorted((at, number, value) for number, (value, at) in enumerate(self._timeouts.items()) if at <= seconds)
        for _, _, value in due:
            del self._timeouts[value]
            key = self._opened(value)
            yield from self.returned.emits(self.code.on_timeout(key))
            self._closed(key)
        yield from super().on_tick(seconds)

    def set_timer(self, method: str, value: KeyValue, time: Time) -> None:
        """Note a timer in event time."""
        self._require(method, "call_at")
        if (time, value) not in self._set:
            self._set.add((time, value))
            heapq.heappush(self._timers, (time, next(self._number), value))

    def set_timeout(self, value: KeyValue, seconds: float) -> None:
        """Note a timer in processing time, which runs from the last tick."""
        self._require("on_timeout", "call_after")
        if not self._ticks:
            raise TopologyError(f"bolt '{self.component}' uses call_after: give it ticks, as in il.bolt(tick=1.0)")
        if self._now is None:
            self._waiting[value] = seconds
        else:
            self._timeouts[value] = self._now + seconds

    def own_state(self) -> dict[str, Any]:
        timers = [[time, value] for time, _, value in sorted(self._timers, key=lambda timer: timer[:2])]
        return {
            "keys": self._states, "timers": timers, "timeouts": self._timeouts, "waiting": self._waiting,
            "now": self._now,
        }  # fmt: skip

    def go_on(self, state: dict[str, Any]) -> None:
        self._states, self._timeouts, self._waiting = state["keys"], state["timeouts"], state["waiting"]
        self._now = state.get("now")
        for time, value in state["timers"]:
            self._set.add((time, value))
            heapq.heappush(self._timers, (time, next(self._number), value))

    def check_invariants(self) -> None:
        # a key without a state is forgotten
        assert all(self._states.values())
        # each timer is set once
        assert len(self._set) == len(self._timers)

    def _opened(self, value: KeyValue) -> Key:
        return Key(value, self._states.get(value, {}), self)

    def _closed(self, key: Key) -> None:
        if key.state:
            self._states[key.value] = key.state
        else:
            self._states.pop(key.value, None)

    def _require(self, method: str, by: str) -> None:
        if not hasattr(self.code, method):
            raise TopologyError(f"bolt '{self.component}' uses {by}: make it a class with the method {method}")
