"""The streams between SPO-Join's own elements."""

from __future__ import annotations

from operators.protocol.stream_ids import StreamId, StreamKind


class SPOStream(StreamKind):
    """Messages about sorted runs, segments, and the mutable part of the decomposed plan."""

    RUNS = "runs"  # mutable part to permutation elements: one dimension of a segment, sorted
    SEGMENTS = "segments"  # permutation elements to PO-Join elements: a finished segment
    BLOCKS = "blocks"  # predicate to logical-AND elements: the sort order of a new block of rows
    RANGES = "ranges"  # predicate to logical-AND elements: the ranks that each probe row's interval covers
    STATE = "state"  # shared cache to PO-Join elements: the limits of some step


RUNS = StreamId(SPOStream.RUNS)
SEGMENTS = StreamId(SPOStream.SEGMENTS)
BLOCKS = StreamId(SPOStream.BLOCKS)
RANGES = StreamId(SPOStream.RANGES)
STATE = StreamId(SPOStream.STATE)
