"""The watermark of a task: the least of what its inputs promise.

An input promises by watermarks. An `Input` with an event-time column promises by its batches too: the times of a source
do not go backwards, or not further than declared (`Origin.lag`). Inputs, and sources of an input, that have ended or
fallen silent are left out. When none is left, nobody holds time back, and it rises to the greatest promise so far.

The merged watermark never falls. A source that comes, or comes back, behind it brings late rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from topology.graph.components import Origin
from topology.graph.event_time import time_as_json, time_from_json
from topology.graph.messages import Batch, End, Idle, Message, Time, Watermark


class MergedWatermark:
    """Follows the messages of all inputs of one task.

    time:             the merged watermark; None before every input has promised something.
    is_idle:          whether no input is active, and not all have ended.
    follows_batches:  whether a batch can change anything; where it cannot, `take` need not see them.
    """

    def __init__(self, origins: Sequence[Origin]) -> None:
        self._inputs = [_InputPromise(origin.lag) for origin in origins]
        self._promising = any(origin.lag is not None for origin in origins)
        self.time: Time | None = None
        self.is_idle = False
        self.follows_batches = self._promising

    def take(self, index: int, message: Message) -> bool:
        """Take the next message of an input; return whether the merged watermark has risen."""
        if not self._inputs[index].take(message):
            return False
        active = [each for each in self._inputs if each.is_active]
        self.is_idle = not active and not all(each.ended for each in self._inputs)
        self.follows_batches = self._promising or any(each.is_silent for each in self._inputs)
        promises = [each.promise for each in active] if active else [_greatest(each.best for each in self._inputs)]
        known = [promise for promise in promises if promise is not None]
        if len(known) < len(promises) or (self.time is not None and min(known) <= self.time):
            return False
        self.time = min(known)
        return True

    def state(self) -> Any:
        """Return what it goes on from, as JSON."""
        return [time_as_json(self.time), self.is_idle, [each.state() for each in self._inputs]]

    def resume(self, state: Any) -> None:
        """Go on from a state."""
        time, self.is_idle, inputs = state
        self.time = time_from_json(time)
        for each, own in zip(self._inputs, inputs, strict=True):
            each.resume(own)
        self.follows_batches = self._promising or any(each.is_silent for each in self._inputs)


class _InputPromise:
    """What one input promises.

    ended: whether nothing more will come.
    best:  the greatest promise of the whole or of any source, also of those that have ended.
    """

    def __init__(self, lag: Time | None) -> None:
        self._lag = lag
        self._whole: Time | None = None  # by watermarks without a source, for all its rows
        self._sources: dict[str, Time | None] = {}  # of those that are neither idle nor ended
        self._idle: dict[str, Time | None] = {}
        self._least: Time | None = None  # of `_sources`
        self._had_sources = False
        self._said_idle = False
        self.ended = False
        self.best: Time | None = None

    @property
    def is_active(self) -> bool:
        """Whether it holds time back."""
        return not self.ended and not self._said_idle and (bool(self._sources) or not self._had_sources)

    @property
    def is_silent(self) -> bool:
        """Whether a batch would make it, or one of its sources, active again."""
        return self._said_idle or bool(self._idle)

    @property
    def promise(self) -> Time | None:
        """The time before which none of its rows will be; None: it promises nothing yet."""
        return _greatest((self._whole, self._least))

    def take(self, message: Message) -> bool:
        """Note a message; return whether the promise or the activity may have changed."""
        match message:
            case Batch(source=source, times=times):
                promise = None if times is None or self._lag is None else times[1] - self._lag
                return self._hear(source if self._lag is not None or source in self._idle else "", promise)
            case Watermark(time=time, source=source):
                return self._hear(source, time)
            case Idle(source=source):
                self._fall_silent(source)
            case End(source=""):
                self.ended = True
            case End(source=source):
                self._had_sources = True
                self._idle.pop(source, None)
                self._sources.pop(source, None)
                self._find_least()
            case _:
                return False
        return True

    def state(self) -> Any:
        """Return what it goes on from, as JSON."""
        sources, idle = (
            {name: time_as_json(time) for name, time in each.items()} for each in (self._sources, self._idle)
        )
        flags = [self._had_sources, self._said_idle, self.ended]
        return [time_as_json(self._whole), time_as_json(self.best), sources, idle, flags]

    def resume(self, state: Any) -> None:
        """Go on from a state."""
        whole, best, sources, idle, (self._had_sources, self._said_idle, self.ended) = state
        self._whole, self.best = time_from_json(whole), time_from_json(best)
        self._sources, self._idle = (
            {name: time_from_json(time) for name, time in each.items()} for each in (sources, idle)
        )
        self._find_least()

    def _hear(self, source: str, time: Time | None) -> bool:
        """Note that the input, or one of its sources, is active and what it promises."""
        was_active, before = self.is_active, self.promise
        self._said_idle = False
        self.best = _greatest((self.best, time))
        if not source:
            self._whole = _greatest((self._whole, time))
        else:
            self._had_sources = True
            known = source in self._sources
            old = self._sources[source] if known else self._idle.pop(source, None)
            self._sources[source] = _greatest((old, time))
            if not known or old == self._least:  # others have promised less, and still hold it there
                self._find_least()
        return not was_active or self.promise != before

    def _fall_silent(self, source: str) -> None:
        if not source:
            self._said_idle = True
        else:
            self._had_sources = True
            self._idle[source] = self._sources.pop(source, self._idle.get(source))
            self._find_least()

    def _find_least(self) -> None:
        promises = list(self._sources.values())
        self._least = None if None in promises or not promises else min(promises)  # type: ignore[type-var]


def _greatest(times: Iterable[Time | None]) -> Time | None:
    return max((time for time in times if time is not None), default=None)


def _written(promises: Mapping[str, Time | None]) -> dict[str, int | str | None]:
    return {name: time_as_json(time) for name, time in promises.items()}
