"""The streams between the links of a flow and their cores, where stored rows move along the chain."""

from __future__ import annotations

from operators.protocol.stream_ids import StreamKind, both_sides


class FlowStream(StreamKind):
    """Messages about the rows that a link holds for its core."""

    ENTERING = "entering"  # link to core: rows that the core stores from now on
    LEAVING = "leaving"  # link to link: rows that newer ones push on
    SEGMENT = "segment"  # link to core: the position at which the core's segment begins


ENTERING = both_sides(FlowStream.ENTERING)
LEAVING = both_sides(FlowStream.LEAVING)
SEGMENT = both_sides(FlowStream.SEGMENT)
