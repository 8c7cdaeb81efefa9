"""Watches one running topology: looks at it again and again, and keeps what it saw."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from interlace.watching.load import by_component, loads
from interlace.watching.look import Look
from interlace.watching.verdict import Verdict, judge
from topology import Handle, InterlaceError, Metrics, State, StoppedError

INTERVAL_SECONDS = 1.0
KEPT_LOOKS = 900
"""A quarter of an hour of numbers."""

KEPT_WHOLE = 180
"""So many looks are kept with everything that they saw; of older ones, only the numbers."""

SMOOTHED = 5
"""What a topology does now is judged over so many looks, so that a single large step does not flicker."""

TREND_PARTS = 4
"""What has grown in each quarter of the kept looks is a trend."""

Consumer = Callable[[Look], None]
"""Somebody who wants every look: a metrics consumer."""

log = logging.getLogger("interlace")


class Watch:
    """What is known of one topology over the last minutes; works alike for every handle.

    `look` looks once; `start` does so every `interval` seconds, in a thread, until `close`. The thread outlives neither
    the program nor the topology. A look costs the topology a copy of its counters.

    consumers: called with every look, in the thread that looks; an error of theirs is logged, and nothing else.
    """

    def __init__(
        self,
        running: Handle,
        *,
        interval: float = INTERVAL_SECONDS,
        consumers: tuple[Consumer, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.running = running
        self.interval = interval
        self.began = clock()
        self._clock = clock
        self._consumers = consumers
        self._looks: deque[Look] = deque(maxlen=KEPT_WHOLE)
        self._points: deque[Mapping[str, float | None]] = deque(maxlen=KEPT_LOOKS)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look now, and from now on at intervals."""
        self.look()
        self._thread = threading.Thread(target=self._go_on, name=f"watching {self.running.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(10 * self.interval)

    def look(self) -> Look:
        """Look once. A topology that cannot be asked for its counters is shown with those of the look before."""
        status = self.running.status()
        last = self._looks[-1] if self._looks else None
        metrics = Metrics(()) if last is None else last.metrics
        waiting_for = ""
        with suppress(InterlaceError):
            if status.state in (State.RUNNING, State.STOPPED, State.FAILED):
                found = self.running.metrics()
                metrics = found if found.tasks else metrics
            if status.state is State.RUNNING:
                waiting_for = self.running.waiting_for()
        seen = Look(self._clock(), self.running.topology, metrics, status, waiting_for)
        with self._lock:
            self._points.append(point(last or seen, seen))
            self._looks.append(seen)
        for consumer in self._consumers:
            try:
                consumer(seen)
            except Exception:
                log.exception("a metrics consumer failed")
        return seen

    @property
    def is_over(self) -> bool:
        """Whether there is no more to see: the topology has ended, or looking at it failed in an unexpected way."""
        return self._over.is_set()

    @property
    def age(self) -> float:
        """The seconds since the last look."""
        return max(0.0, self._clock() - self.now()[0].at)

    def now(self) -> tuple[Look, Look]:
        """The last look, and one a little earlier to compare it with."""
        with self._lock:
            return self._looks[-1], self._looks[max(0, len(self._looks) - 1 - SMOOTHED)]

    def verdict(self) -> Verdict:
        """How it is."""
        last, before = self.now()
        with self._lock:
            looks = list(self._looks)
        earlier = [looks[len(looks) * part // TREND_PARTS] for part in range(TREND_PARTS)]
        return judge(last, before, by_component(loads(before, last)), earlier)

    def series(self, after: float = 0.0) -> list[Mapping[str, float | None]]:
        """The numbers of the looks after this moment, oldest first; see `point`."""
        with self._lock:
            return [each for each in self._points if (each["at"] or 0.0) > after]

    def _go_on(self) -> None:
        while not self._ended.wait(self.interval):
            try:
                if self.look().status.state in (State.FAILED, State.STOPPED):
                    self._over.set()
                    return
            except StoppedError:
                self._over.set()
                return
            except InterlaceError:  # out of reach for the moment, or for good: the last look stays
                continue
            except Exception:
                log.exception("watching '%s' failed", self.running.name)
                self._over.set()
                return


def point(before: Look, now: Look) -> dict[str, float | None]:
    """The numbers of a look, for charts; None where there is nothing to tell."""
    seconds = max(now.at - before.at, 1e-3)
    p50, p95, p99 = now.latency.since(before.latency).percentiles(50, 95, 99)

    def rate(number: Callable[[Look], float]) -> float:
        return max(0.0, number(now) - number(before)) / seconds

    found: dict[str, float | None] = {
        "at": now.at,
        "rows_in_rate": rate(lambda look: look.rows_in),
        "rows_out_rate": rate(lambda look: look.rows_out),
        "latency_p50": p50,
        "latency_p95": p95,
        "latency_p99": p99,
        "late_rate": rate(lambda look: look.metrics.total("late") + look.metrics.total("rejected")),
        "waiting_rows": now.metrics.total("waiting_rows"),
        "waiting_bytes": float(now.waiting_bytes),
        "state_bytes": now.state_bytes,
        "window_rows": now.window_rows,
        "window_fill": now.window_fill,
        "log_bytes": float(now.log_bytes),
        "checkpoint_bytes": float(now.checkpoint_bytes),
        "free_memory_bytes": None if now.free_memory_bytes is None else float(now.free_memory_bytes),
        "spilled_bytes": now.metrics.total("spilled_bytes"),
        "memory_bytes": float(sum(worker.vitals.memory for worker in now.status.workers if worker.vitals)),
        "recoveries": float(now.status.recoveries),
    }
    for name, load in by_component(loads(before, now)).items():
        found[f"busy:{name}"] = load.busy
        found[f"blocked:{name}"] = load.blocked
    for reason, late in now.late.items():
        earlier = before.late.get(reason, {"rows": 0})["rows"]
        found[f"late:{reason}"] = max(0, late["rows"] - earlier) / seconds
    for source in now.sources:
        found[f"behind:{source['stream']}/{source['source']}"] = source["behind"]
    return {name: None if value is None or not math.isfinite(value) else value for name, value in found.items()}


def jsonable(value: Any) -> Any:
    """A value as JSON can express it: numbers that are none become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(each) for each in value]
    return value
