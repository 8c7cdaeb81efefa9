"""The streams between router, elements and collector. Streams between an engine's own elements are in its room."""

from __future__ import annotations

from operators.protocol.stream_ids import StreamId, StreamKind, both_sides


class JoinStream(StreamKind):
    """The kinds of messages that every engine's elements and the collector understand."""

    LIMITS = "limits"  # router: what is live, and where the immutable part ends; first in each step
    PROBES = "probes"  # router: a step's rows of one side, to be stored and to probe with
    MERGE = "merge"  # router: the order to make a segment of the immutable part
    PAYLOAD = "payload"  # router to collector: the columns of one side that results show or check
    VALUES = "values"  # router: what the arguments of aggregates are in a step's rows of one side
    EXPIRED = "expired"  # router to collector: rows of a window per key that expire one by one
    MATCHES = "matches"  # elements: the positions that each probe row of one side matches
    COUNTS = "counts"  # elements: the number of matches of each probe row, where only that is asked for
    TOTALS = "totals"  # elements: the aggregates over the matches of each probe row, where they need no list of these


LIMITS = StreamId(JoinStream.LIMITS)
MERGE = StreamId(JoinStream.MERGE)
PROBES = both_sides(JoinStream.PROBES)
PAYLOAD = both_sides(JoinStream.PAYLOAD)
VALUES = both_sides(JoinStream.VALUES)
EXPIRED = both_sides(JoinStream.EXPIRED)
MATCHES = both_sides(JoinStream.MATCHES)
COUNTS = both_sides(JoinStream.COUNTS)
TOTALS = both_sides(JoinStream.TOTALS)

STEP = (LIMITS, *PROBES)
"""The streams that make up a step. The punctuation after them ends it."""


def probes_of(side: int, dimension: int) -> StreamId:
    """The probe rows of a side with the keys and intervals of one dimension only."""
    return StreamId(JoinStream.PROBES, side, dimension)


def answer_streams(counts: bool, totals: bool = False) -> tuple[StreamId, ...]:
    """The outputs of an element that answers probes; `counts`, `totals`: it may answer with these instead."""
    return (*MATCHES, *(COUNTS if counts else ()), *(TOTALS if totals else ()))
