"""The messages that travel along an edge.

An edge carries batches of rows, in order, and control messages between them. A control message makes a statement about
all rows before it. Messages are immutable. Rows are Arrow; inside a process they are shared and never copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

Time = int | float

CONTROL_BYTES = 64
"""The size of a control message, and of a batch without its rows, in the byte bound of an edge."""

_SMALL = 256 * 1024


def rows_bytes(rows: pa.RecordBatch) -> int:
    """Return the bytes of the rows themselves: a slice does not count the rest of the table it was cut from.

    The size of the whole buffers is the fastest to find, and is good enough where it is small. Otherwise the bytes of
    columns of fixed width follow from the number of rows. Only other columns need Arrow's exact figure, which is slow
    because it releases the interpreter lock.
    """
    whole: int = rows.get_total_buffer_size()
    if whole <= _SMALL:
        return whole
    bits = 0
    for kind in rows.schema.types:
        try:
            bits += kind.bit_width
        except ValueError:
            return whole if _has_dense_union(rows.schema.types) else int(rows.nbytes)
    return bits * rows.num_rows // 8


def _has_dense_union(kinds: list[pa.DataType]) -> bool:
    """Whether Arrow's exact figure is out of reach: asked for that of an empty dense union, it ends the process."""
    for kind in kinds:
        inner = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        inner = inner.value_type if pa.types.is_dictionary(inner) else inner
        if pa.types.is_union(inner) and inner.mode == "dense":
            return True
        if _has_dense_union([inner.field(index).type for index in range(inner.num_fields)]):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of one stream.

    stream: the producer's output stream that the rows belong to.
    first:  the position (or offset, in a source) of the first row; the others follow without gaps.
    source: the physical source, as long as the rows of several sources are separate.
    times:  the smallest and the largest event time in the batch, where known.
    born:   the wall-clock time at which the oldest row entered the topology; latency is measured from it.
    labels: a few numbers about the whole batch; each stream defines their meaning.
    memo:   the objects that the producer made the rows from, so that consumers in its process need not unpack them;
            often None. See `UnpackedBatch`.
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
    def num_rows(self) -> int:
        """The number of rows; unlike `rows`, it packs nothing."""
        return self.rows.num_rows

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self.first + self.num_rows

    def with_rows(self, rows: pa.RecordBatch) -> Batch:
        """The same batch with other rows."""
        return Batch(self.stream, rows, self.first, self.source, self.times, self.born, self.labels)

    def with_labels(self, *labels: int) -> Batch:
        """The same batch with other labels."""
        return replace(self, labels=labels)


class Packable(Protocol):
    """Objects that stand for rows and can be packed as Arrow."""

    @property
    def num_rows(self) -> int:
        """The number of rows that they become."""

    @property
    def nbytes(self) -> int:
        """The bytes of the columns that they become."""

    def to_arrow(self) -> pa.RecordBatch:
        """Pack them."""


_ROWS = Batch.__dict__["rows"]


class UnpackedBatch(Batch):
    """A batch whose rows are packed when somebody first asks for them; consumers in this process use its `memo`."""

    __slots__ = ()

    def __init__(
        self, stream: str, memo: Packable, first: int = 0, born: float = 0.0, labels: tuple[int, ...] = ()
    ) -> None:
        write = object.__setattr__
        _ROWS.__set__(self, None)
        write(self, "stream", stream)
        write(self, "first", first)
        write(self, "source", "")
        write(self, "times", None)
        write(self, "born", born)
        write(self, "labels", labels)
        write(self, "memo", memo)
        write(self, "nbytes", CONTROL_BYTES + memo.nbytes)

    @property
    def rows(self) -> pa.RecordBatch:
        """The packed rows."""
        packed = _ROWS.__get__(self)
        if packed is None:
            packed = self.memo.to_arrow()  # type: ignore[attr-defined]
            _ROWS.__set__(self, packed)
        return packed

    @property
    def num_rows(self) -> int:
        return self.memo.num_rows  # type: ignore[attr-defined]

    def with_labels(self, *labels: int) -> Batch:
        return UnpackedBatch(self.stream, self.memo, self.first, self.born, labels)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and _content(self) == _content(other)

    def __hash__(self) -> int:
        return hash((self.stream, self.first, self.labels))

    def __reduce__(self) -> tuple[type[Batch], tuple[object, ...]]:
        return Batch, _content(self)  # in another process its rows are packed


def _content(batch: Batch) -> tuple[object, ...]:
    return batch.stream, batch.rows, batch.first, batch.source, batch.times, batch.born, batch.labels


@dataclass(frozen=True, slots=True)
class Watermark:
    """No row of `source` with an earlier event time will follow; with an empty source, no row on this edge.

    `time=None` only announces the source, or the edge: it is active, but promises nothing new.

    bound: how far event time may go backwards in this source, where it has declared that itself; None: as its stream
           has.
    """

    time: Time | None
    stream: str = ""
    source: str = ""
    bound: Time | None = None


@dataclass(frozen=True, slots=True)
class Idle:
    """`source` has been silent for a while: progress ignores it until its next batch.

    With an empty source: nothing on this edge is active (the stream has no source yet, or all inputs of the sending
    task are idle), and progress does not wait for it.
    """

    stream: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """All rows and answers for sequence numbers up to and including `seq` have been emitted."""

    seq: int
    born: float = 0.0


@dataclass(frozen=True, slots=True)
class StepEnd(Punctuation):
    """The end of a step of the sequencer, by whose numbers everything behind it counts.

    Joins that are parts number rows by themselves: their punctuations count the rows of their own order.

    clock: the wall-clock time of a tick at the end of this step; None: there is none.
    """

    clock: float | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """The place of a snapshot: everything before it is in the snapshot, nothing after it.

    checkpoint: the last sequence number before it.
    life:       the life of the topology in which it is placed; together the two name the snapshot.
    """

    checkpoint: int
    life: str = ""


@dataclass(frozen=True, slots=True)
class Restore:
    """The tasks begin with the snapshot that was taken at a barrier. It comes before all rows on every edge."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class Resume:
    """The tasks of a topology with a journal begin here: where `sink` stood before. It comes first on every edge.

    place:        the last sequence number whose results the sink no longer needs.
    number:       the number of the first result after that place.
    acknowledged: the last number that a reader has acknowledged.
    first:        whether there was nothing before: nobody can have seen a result.
    """

    sink: str
    place: int = -1
    number: int = 0
    acknowledged: int = -1
    first: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """No more rows of `source` will follow; with an empty source, nothing at all follows on this edge."""

    stream: str = ""
    source: str = ""


Message = Batch | Watermark | Idle | Punctuation | Barrier | Restore | Resume | End


def message_bytes(message: Message) -> int:
    """Return the size of a message in the byte bound of its edge."""
    return message.nbytes if isinstance(message, Batch) else CONTROL_BYTES
