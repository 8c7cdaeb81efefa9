"""The ledger of a stream's feeds: which query each belongs to, and which of its micro-batches have been committed.

A feed is what one streaming query writes to the stream, under a name that the user gives. Its rows are those of the
source of that name. A query writes micro-batches, numbered upwards; it may write one again, with its rows divided
otherwise, and each part may be tried more than once. Attempts stage rows; one commit for each micro-batch names those
that count.

    query q1: stages 7 by attempts a, b, a' (a again)   commits 7 = a' + b   stages 7 again: dropped, 7 is committed
    query q2 (after a deleted checkpoint): refused, until it takes over; then q1 is refused
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topology.graph.errors import InputError
from topology.graph.messages import Time
from topology.journal.image import FeedImage


@dataclass
class _Attempt:
    count: int = 0
    latest: Time | None = None


@dataclass
class _Feed:
    query: str
    past: set[str]
    delay: int | None = None
    committed: int = -1
    staged: dict[tuple[int, str], _Attempt] = field(default_factory=dict)


class FeedLedger:
    """The feeds of one stream; it keeps no rows. A refused call changes nothing. Not thread-safe."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._feeds: dict[str, _Feed] = {}

    def restore(self, feeds: Mapping[str, FeedImage]) -> None:
        """Go on where another ledger was; only for a new one. What was staged is staged again."""
        for name, image in feeds.items():
            self._feeds[name] = _Feed(image.query, set(image.past), image.delay, image.committed)

    def is_known(self, feed: str) -> bool:
        """Whether a query has opened the feed."""
        return feed in self._feeds

    def delay(self, feed: str) -> int | None:
        """How far event time may go backwards in a feed, if its query has declared that."""
        return self._feeds[feed].delay if feed in self._feeds else None

    def bind(self, feed: str, query: str, take_over: bool, delay: int | None) -> bool:
        """Give a feed to a query; return whether it had another one, or none.

        The delay is for good, because rows have been put in order by it.
        """
        known = self._feeds.get(feed)
        if known is None:
            self._feeds[feed] = _Feed(query, set(), delay)
            return True
        if known.delay != delay:
            raise self._refusal(
                feed,
                f"it was opened with {_shown(known.delay)}, and this query has {_shown(delay)}: declare the same, or "
                f"choose another feed",
            )
        if known.query == query:
            return False
        if query in known.past:
            raise self._refusal(feed, f"query {known.query} has taken over from {query}, which cannot come back")
        if not take_over:
            raise self._refusal(
                feed,
                f"it belongs to query {known.query}, and this is {query}: a query has another id after its checkpoint "
                f"was deleted. Restart it from its own checkpoint, choose another feed, or take over "
                f"(option takeOver=true); then whatever it reads again comes twice",
            )
        self._feeds[feed] = _Feed(query, known.past | {known.query}, delay)
        return True

    def committed(self, feed: str, query: str) -> int:
        """The number of the last micro-batch that was committed; -1: none."""
        return self._of(feed, query).committed

    def staged_rows(self, feed: str, query: str, number: int, attempt: str) -> int:
        """How many rows an attempt has staged."""
        return self._of(feed, query).staged.get((number, attempt), _Attempt()).count

    def stage(self, feed: str, query: str, number: int, attempt: str, rows: int, latest: Time | None) -> None:
        """Count the next rows of an attempt; `latest` is the greatest event time among them."""
        staged = self._of(feed, query).staged.setdefault((number, attempt), _Attempt())
        staged.count += rows
        staged.latest = later(staged.latest, latest)

    def commit(self, feed: str, query: str, number: int, attempts: Mapping[str, int]) -> Time | None:
        """Count a micro-batch as committed: each of these attempts must have staged so many rows.

        Return the greatest event time among them. What else was staged for this number, or a lower one, is forgotten.
        """
        known = self._of(feed, query)
        latest = None
        for attempt, rows in attempts.items():
            staged = known.staged.get((number, attempt), _Attempt())
            if staged.count != rows:
                raise self._refusal(
                    feed,
                    f"micro-batch {number} cannot be committed with {rows} rows of attempt '{attempt}', because "
                    f"{staged.count} have arrived",
                )
            latest = later(latest, staged.latest)
        known.committed = number
        known.staged = {key: staged for key, staged in known.staged.items() if key[0] > number}
        return latest

    def staged(self, feed: str) -> list[tuple[int, str]]:
        """The micro-batches and attempts that have staged rows."""
        return list(self._feeds[feed].staged) if feed in self._feeds else []

    def _of(self, feed: str, query: str) -> _Feed:
        known = self._feeds.get(feed)
        if known is None:
            raise self._refusal(feed, "no query has opened it")
        if known.query != query:
            raise self._refusal(feed, f"query {known.query} has taken over from {query}")
        return known

    def _refusal(self, feed: str, reason: str) -> InputError:
        return InputError(f"stream '{self._stream}', feed '{feed}': {reason}")


def _shown(delay: int | None) -> str:
    return "no delay of its own" if delay is None else f"a delay of {delay}"


def later(one: Time | None, other: Time | None) -> Time | None:
    """The greater of two event times, where None is below all."""
    return other if one is None else one if other is None else max(one, other)
