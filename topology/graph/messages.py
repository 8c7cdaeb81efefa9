"""What travels along an edge.

An edge carries batches of rows, in order, and between them control messages that say something about all rows before
them. Messages are immutable; rows are Arrow and are shared, never copied, inside a process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

Time = int | float

CONTROL_BYTES = 64
"""What a control message counts for in the bounds of an edge, and a batch besides its rows."""

_SMALL = 256 * 1024


def rows_bytes(rows: pa.RecordBatch) -> int:
    """Return the bytes of the rows themselves: a slice does not count the rest of the table it was cut from.

    The size of the whole buffers is found fastest; where it is small, it will do. Otherwise the bytes of columns of
    fixed width follow from the number of rows, and only other columns need Arrow's exact figure, which gives up the
    interpreter lock to find it.
    """
    whole: int = rows.get_total_buffer_size()
    if whole <= _SMALL:
        return whole
    bits = 0
    for kind in rows.schema.types:
        try:
            bits += kind.bit_width
        except ValueError:
            return int(rows.nbytes)
    return bits * rows.num_rows // 8


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of one stream.

    stream: the producer's output stream that the rows belong to.
    first:  the number of the first row in its stream's (or source's) own numbering; the rest follow without gaps.
    source: the physical source, while rows of several sources still travel apart.
    times:  the smallest and the largest event time in the batch, where known.
    born:   when the oldest row entered the topology, by the wall clock of the driver; latency is measured from it.
    labels: a few numbers about the batch as a whole; what they mean belongs to the stream.
    memo:   what the producer made the rows from, so that consumers in its process need not unpack them; often None.
    """

    stream: str
    rows: pa.RecordBatch
    first: int = 0
    source: str = ""
    times: tuple[Time, Time] | None = None
    born: float = 0.0
    labels: tuple[int, ...] = ()
    memo: object = field(default=None, compare=False, repr=False)
    nbytes: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nbytes", CONTROL_BYTES + rows_bytes(self.rows))

    @property
    def end(self) -> int:
        """The number after the last row's."""
        return self.first + self.rows.num_rows


@dataclass(frozen=True, slots=True)
class Watermark:
    """No row of `source` (of the whole stream, if empty) with an earlier event time will follow.

    `time=None` only announces the source: it exists and has promised nothing yet.
    """

    time: Time | None
    stream: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing has come from `source` for a while: nobody is to wait for it until it sends again.

    With an empty source: the stream has none yet, and nobody is to wait for one.
    """

    stream: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Everything that belongs to sequence numbers up to and including `seq` has been sent."""

    seq: int
    born: float = 0.0


@dataclass(frozen=True, slots=True)
class Barrier:
    """Checkpoint number `checkpoint` lies here: all before it is in the snapshot, nothing after it."""

    checkpoint: int


@dataclass(frozen=True, slots=True)
class End:
    """No more rows of `source` of `stream`; with an empty source, nothing at all will follow on this edge."""

    stream: str = ""
    source: str = ""


Message = Batch | Watermark | Idle | Punctuation | Barrier | End


def message_bytes(message: Message) -> int:
    """Return what a message counts for against the byte bound of its edge."""
    return message.nbytes if isinstance(message, Batch) else CONTROL_BYTES
