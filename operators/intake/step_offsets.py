"""Which rows of each source a step of the gate holds, so that an error in it can name them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from operators.intake.waiting_run import SourceName


@dataclass
class _Part:
    """The rows of a batch that have not passed: so many of those at [first, end)."""

    first: int
    end: int
    rows: int


@dataclass
class _Source:
    """What waits of a source, in order.

    unknown: rows before it that wait, too, of which only the number is known.
    ordered: whether rows pass in the order of their offsets.
    """

    unknown: int = 0
    parts: deque[_Part] = field(default_factory=deque)
    end: int = 0
    ordered: bool = True


class StepOffsets:
    """Follows the offsets of waiting rows.

    taken from a: 0-9, of which 2 are late, then 10-14
    a step took 8 rows of a:   its rows are among 0-9
    the next one took 2:       they are 10-11
    """

    def __init__(self) -> None:
        self._sources: dict[SourceName, _Source] = {}

    def wait(self, source: SourceName, rows: int) -> None:
        """Rows of a source wait whose offsets nobody knows any more; before all that are taken."""
        self._sources[source] = _Source(rows)

    def take(self, source: SourceName, first: int, end: int, rows: int, ordered: bool) -> None:
        """Of the rows at [first, end), so many wait."""
        known = self._sources.setdefault(source, _Source())
        known.end = end
        known.ordered = known.ordered and ordered
        if not known.ordered:
            known.parts.clear()
        elif rows:
            known.parts.append(_Part(first, end, rows))

    def release(self, took: Mapping[SourceName, int]) -> dict[tuple[str, str], tuple[int | None, int]]:
        """Return in which offsets the rows of a step are, by stream and source; from None: only the end is known."""
        return {(source.stream, source.name): self._released(source, count) for source, count in took.items()}

    def _released(self, source: SourceName, count: int) -> tuple[int | None, int]:
        known = self._sources.setdefault(source, _Source())
        if not known.ordered:
            return None, known.end
        unknown = min(count, known.unknown)
        known.unknown -= unknown
        count -= unknown
        first, end = None, known.parts[0].first if known.parts else known.end
        while count and known.parts:
            part = known.parts[0]
            some = min(count, part.rows)
            first = part.first if first is None else first
            part.rows -= some
            count -= some
            end = part.end - part.rows
            part.first += some
            if not part.rows:
                known.parts.popleft()
        return None if unknown else first, end
