"""The rows of a step as elements see them: keys to store, and what each row may meet on the other side.

Elements work on keys, intervals and positions only (see `indexes`). The router has resolved types, expressions and
windows before.

Between processes a bound that says nothing new does not travel: the open end of a half-line, which is the same for all
rows, or a bound that is the row's own key. The metadata of the schema names these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Interval, Keys, Live
from operators.protocol.columns import Int64, array_of, keys_of, values_of
from operators.protocol.streams import PROBES, probes_of
from topology import Batch, UnpackedBatch

_INTEGERS = np.iinfo(np.int64)
_ENDS: dict[str, tuple[float, float]] = {"d": (-np.inf, np.inf), "l": (int(_INTEGERS.min), int(_INTEGERS.max))}
"""The ends of each domain of keys, by NumPy's letter for its type."""


@dataclass(frozen=True)
class ElementRows:
    """Rows of one side, the first at position `first`; consecutive ones, unless their positions are listed.

    keys:      what is stored of each row, one column per dimension.
    intervals: the keys of the other side that each row matches, per dimension.
    live:      the positions of the other side that each row may meet.
    positions: of the rows, ascending, where an element gets some of a step's rows; None: they are consecutive.
    """

    first: int
    seq: Int64
    keys: tuple[Keys, ...]
    intervals: tuple[Interval, ...]
    live: Live
    positions: Int64 | None = None

    def __len__(self) -> int:
        return len(self.live)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.seq)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        held = self.seq.nbytes + self.live.start.nbytes + self.live.end.nbytes
        held += 0 if self.positions is None else self.positions.nbytes
        for keys, interval in zip(self.keys, self.intervals, strict=True):
            held += keys.values.nbytes + interval.low.nbytes + interval.high.nbytes
        return held

    def to_arrow(self) -> pa.RecordBatch:
        """Pack as a record batch; arrays without nulls are not copied."""
        columns: dict[str, pa.Array] = {}
        left_out: dict[str, str] = {}
        for index, (keys, interval) in enumerate(zip(self.keys, self.intervals, strict=True)):
            columns[f"key{index}"] = array_of(keys)
            for name, bound in ((f"low{index}", interval.low), (f"high{index}", interval.high)):
                known = _known(bound, keys)
                if known is None:
                    columns[name] = pa.array(bound, from_pandas=False)
                else:
                    left_out[name] = known
        columns |= {"first": pa.array(self.live.start), "end": pa.array(self.live.end), "seq": pa.array(self.seq)}
        if self.positions is not None:
            columns["position"] = pa.array(self.positions)
        return pa.record_batch(columns, metadata=left_out or None)

    def to_batch(self, side: int, born: float = 0.0) -> Batch:
        """The probe rows of a side, packed only if they leave the process."""
        return UnpackedBatch(PROBES[side].name, self, first=self.first, born=born)

    def to_batch_of_dimension(self, side: int, dimension: int, born: float = 0.0) -> Batch:
        """The probe rows with the keys and intervals of one dimension, which is number 0 in them."""
        own = slice(dimension, dimension + 1)
        part = ElementRows(self.first, self.seq, self.keys[own], self.intervals[own], self.live)
        return UnpackedBatch(probes_of(side, dimension).name, part, first=self.first, born=born)

    @classmethod
    def from_batch(cls, batch: Batch, negated: Sequence[bool]) -> ElementRows:
        """Unpack, unless the batch still carries its rows. `negated[d]`: dimension d is negated."""
        if isinstance(batch.memo, ElementRows):
            return batch.memo
        return cls.from_arrow(batch.rows, batch.first, negated)

    @classmethod
    def from_arrow(cls, rows: pa.RecordBatch, first: int, negated: Sequence[bool]) -> ElementRows:
        """Unpack packed rows, the first at position `first`."""
        keys = tuple(keys_of(rows.column(f"key{index}")) for index in range(len(negated)))
        intervals = tuple(
            Interval(_bound(rows, f"low{index}", one), _bound(rows, f"high{index}", one), negated[index])
            for index, one in enumerate(keys)
        )
        live = Live(values_of(rows.column("first")), values_of(rows.column("end")))
        positions = values_of(rows.column("position")) if "position" in rows.schema.names else None
        return cls(first, values_of(rows.column("seq")), keys, intervals, live, positions)

    def between(self, start: int, stop: int) -> ElementRows:
        """The rows from number `start` to before `stop` of this batch."""
        part = slice(start, stop)
        positions = None if self.positions is None else self.positions[part]
        return ElementRows(
            self.first + start if positions is None or not len(positions) else int(positions[0]),
            self.seq[part],
            tuple(Keys(keys.values[part], None if keys.valid is None else keys.valid[part]) for keys in self.keys),
            tuple(Interval(one.low[part], one.high[part], one.negated) for one in self.intervals),
            Live(self.live.start[part], self.live.end[part]),
            positions,
        )

    def taken(self, rows: Int64) -> ElementRows:
        """Some of the rows, by their ascending numbers; at least one. Cost: O(rows) for each column."""
        keys = tuple(Keys(one.values[rows], None if one.valid is None else one.valid[rows]) for one in self.keys)
        intervals = tuple(
            Interval(
                part.values if one.low is own.values else one.low[rows],
                part.values if one.high is own.values else one.high[rows],
                one.negated,
            )
            for one, own, part in zip(self.intervals, self.keys, keys, strict=True)
        )
        positions = self.first + rows if self.positions is None else self.positions[rows]
        live = Live(self.live.start[rows], self.live.end[rows])
        return ElementRows(int(positions[0]), self.seq[rows], keys, intervals, live, positions)


_OWN_KEY = "key"


def _known(bound: np.ndarray, keys: Keys) -> str | None:
    """How the receiver makes a bound itself; None if it has to be sent."""
    if not len(bound):
        return None
    if keys.valid is None and bound.dtype == keys.values.dtype and bound.ctypes.data == keys.values.ctypes.data:
        return _OWN_KEY
    ends = _ENDS.get(bound.dtype.char)
    if ends is None or bound[0] != bound[-1] or bound[0] not in ends:
        return None
    return f"{bound.dtype.char}{bound[0]}" if (bound == bound[0]).all() else None


def _bound(rows: pa.RecordBatch, name: str, keys: Keys) -> np.ndarray:
    known = (rows.schema.metadata or {}).get(name.encode())
    if known is None:
        return values_of(rows.column(name))
    if known.decode() == _OWN_KEY:
        return keys.values
    kind, end = known[:1].decode(), known[1:].decode()
    return np.full(rows.num_rows, float(end) if kind == "d" else int(end), kind)
