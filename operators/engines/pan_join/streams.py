"""The streams between PanJoin's manager, workers and mirror."""

from __future__ import annotations

from operators.protocol.stream_ids import StreamId, StreamKind, both_sides


class PanStream(StreamKind):
    """The manager's commands (see `commands`), and the workers' records."""

    CREATE = "create"
    INSERT = "insert"
    PROBE = "probe"
    EXPIRE = "expire"
    PROBED = "probed"  # manager to mirror: each probe command once
    RECORDS = "records"  # workers to mirror: ranks instead of positions


CREATE = StreamId(PanStream.CREATE)
INSERT = StreamId(PanStream.INSERT)
PROBE = StreamId(PanStream.PROBE)
EXPIRE = StreamId(PanStream.EXPIRE)
PROBED = StreamId(PanStream.PROBED)
RECORDS = both_sides(PanStream.RECORDS)

COMMANDS = (CREATE, INSERT, PROBE, EXPIRE)
"""What a worker takes from the manager."""

MIRRORED = (CREATE, INSERT, PROBED, EXPIRE)
"""What the mirror takes from the manager."""
