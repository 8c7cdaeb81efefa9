"""Sources that follow each other in event time: none has a row that is earlier than one of the source before.

An open source that has sent nothing holds all others back. A source that follows another promises, without a row of its
own, what the other has reached.

    R/0 enters up to 12, R/1 follows R/0, R/2 follows R/1:   R/1 and R/2 promise 12
    R/1 has no rows and ends, R/2 goes on                    R/2 promises 12
"""

from __future__ import annotations

from topology.graph.components import DEFAULT_STREAM
from topology.graph.messages import Time, Watermark


class Followers:
    """The sources of one stream that follow others. Not thread-safe."""

    def __init__(self) -> None:
        self._next: dict[str, str] = {}
        self._reached: dict[str, Time] = {}  # of sources that others follow, or may follow

    def add(self, source: str, behind: str) -> Time | None:
        """Let a new source follow another; return what it promises already."""
        self._next[behind] = source
        reached = self._reached.get(behind)
        if reached is not None:
            self._reached[source] = reached
        return reached

    def promises(self, source: str, reached: Time) -> list[Watermark]:
        """What others promise when rows of a source have entered up to this time. Cost: O(sources behind it)."""
        found = []
        self._reached[source] = reached
        while (source := self._next.get(source, "")) != "":
            self._reached[source] = max(reached, self._reached.get(source, reached))
            found.append(Watermark(reached, DEFAULT_STREAM, source))
        return found

    def forget(self, source: str) -> None:
        """All rows of a source have entered; what follows it goes on by itself."""
        self._next.pop(source, None)
        self._reached.pop(source, None)
