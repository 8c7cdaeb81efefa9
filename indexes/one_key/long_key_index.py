"""Any index, for keys of any length: it finds by lead, the bytes settle the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from indexes.kernels.columns import EVERYWHERE, Interval, Keys, Live, Matches, frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.long_keys import LongInterval, LongKeys, compare_bytes
from indexes.kernels.window_index import WindowIndex
from indexes.one_key.byte_rows import ByteRows

CANDIDATES_AT_ONCE = 1 << 22
"""Candidates that are held before they are settled; more, and the probe batch is split."""

NO_BYTES = frozen(np.empty(0, np.uint8))
NO_OFFSETS = frozen(np.zeros(1, np.int64))


class LongKeyIndex(WindowIndex):
    """An index over leads, and the bytes of the rows by position.

    Where leads are all different, as with most short strings, a probe costs what it costs in the index
    within, and one comparison of bytes per match. Where many values share their first eight bytes, all
    rows with a bound's lead are compared: exact, but as slow as that is long.
    """

    def __init__(self, within: WindowIndex, long: Sequence[int], first_position: int = 0) -> None:
        """`within` is empty and has all dimensions; `long` names those that come as `LongKeys`."""
        self.within = within
        self._bytes = {d: ByteRows(first_position) for d in long}

    def insert(self, keys: Sequence[Keys | LongKeys]) -> None:
        """Cost: the index's within, and O(bytes) amortised."""
        leads = []
        for d, column in enumerate(keys):
            if isinstance(column, LongKeys):
                self._bytes[d].append(column)
                leads.append(column.leads())
            else:
                assert d not in self._bytes, "a dimension keeps its kind"
                leads.append(column)
        self.within.insert(leads)

    def probe_within(
        self, limit: int, intervals: Sequence[Interval | LongInterval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: the index's within, and O(bytes compared) per candidate that its lead does not settle."""
        leads = [one.leads() if isinstance(one, LongInterval) else one for one in intervals]
        at_once = CANDIDATES_AT_ONCE if len(live) > 1 else EVERYWHERE
        candidates = self.within.probe_within(at_once, leads, live, ordered=ordered)
        if candidates is None:
            half = len(live) // 2
            first = self._part(limit, intervals, live, slice(0, half), ordered)
            if first is None:
                return None
            second = self._part(limit - len(first.positions), intervals, live, slice(half, len(live)), ordered)
            if second is None:
                return None
            offsets = np.concatenate([first.offsets, second.offsets[1:] + len(first.positions)])
            return Matches(offsets, np.concatenate([first.positions, second.positions]))
        for d, interval in enumerate(intervals):
            if isinstance(interval, LongInterval):
                candidates = self._settle(candidates, interval, self._bytes[d])
        return candidates if len(candidates.positions) <= limit else None

    def probe(self, intervals: Sequence[Interval | LongInterval], live: Live, *, ordered: bool = True) -> Matches:
        """Cost: as `probe_within`."""
        matches = self.probe_within(EVERYWHERE, intervals, live, ordered=ordered)
        assert matches is not None, "there is no limit to exceed"
        return matches

    def _part(
        self, limit: int, intervals: Sequence[Interval | LongInterval], live: Live, part: slice, ordered: bool
    ) -> Matches | None:
        return self.probe_within(limit, [one.rows(part) for one in intervals], live.rows(part), ordered=ordered)

    @staticmethod
    def _settle(candidates: Matches, interval: LongInterval, rows: ByteRows) -> Matches:
        offsets = np.empty(len(candidates.offsets), np.int64)
        positions = np.empty(len(candidates.positions), np.int64)
        bounds = []
        for bound in (interval.low, interval.high):
            bounds += [bound is not None, *((bound.lead, bound.data, bound.offsets) if bound is not None else NO_BOUND)]
        open_ends = interval.low_open, interval.high_open, interval.negated
        kept = _settle(
            frozen(candidates.offsets), frozen(candidates.positions), offsets, positions,
            *bounds, *open_ends, *rows.arrays(), rows.first_position,
        )  # fmt: skip
        return Matches(offsets, positions[:kept])

    def expire(self, below: int) -> None:
        """Cost: the index's within, and O(bytes dropped) amortised."""
        self.within.expire(below)
        for rows in self._bytes.values():
            rows.expire(below)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: the index's within, and O(bytes)."""
        name = f"{type(self.within).__module__}:{type(self.within).__qualname__}"
        arrays: dict[str, np.ndarray] = {
            "within": np.frombuffer(name.encode(), np.uint8),
            "long": np.array(list(self._bytes), np.int64),
        }
        arrays |= {f"within.{part}": array for part, array in self.within.snapshot().items()}
        for d, rows in self._bytes.items():
            arrays |= {f"bytes.{d}.{part}": array for part, array in rows.snapshot().items()}
        return arrays

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: the index's within, and O(bytes)."""
        within = _class_named(snapshot["within"].tobytes().decode())
        index = cls(within.restore(_below("within.", snapshot)), ())
        for d in snapshot["long"].tolist():
            index._bytes[d] = ByteRows.restore(_below(f"bytes.{d}.", snapshot))
        return index

    @property
    def nbytes(self) -> int:
        """Cost: the index's within."""
        return self.within.nbytes + sum(rows.nbytes for rows in self._bytes.values())

    def check_invariants(self) -> None:
        self.within.check_invariants()
        # All long dimensions hold the same rows.
        assert len({(rows.first_position, rows.end_position) for rows in self._bytes.values()}) <= 1
        for rows in self._bytes.values():
            rows.check_invariants()


NO_BOUND = (frozen(np.empty(0, np.int64)), NO_BYTES, NO_OFFSETS)


def _below(prefix: str, snapshot: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in snapshot.items() if name.startswith(prefix)}


def _class_named(name: str) -> type[WindowIndex]:
    known: type[WindowIndex]
    for known in _heirs(WindowIndex):
        if f"{known.__module__}:{known.__qualname__}" == name:
            return known
    raise ValueError(f"the snapshot is of {name}, which is not a window index here")


def _heirs(kind: type) -> list[type]:
    direct: list[type] = kind.__subclasses__()
    return [*direct, *(heir for child in direct for heir in _heirs(child))]


@kernel
def _settle(
    candidate_offsets: np.ndarray,
    candidates: np.ndarray,
    offsets: np.ndarray,
    positions: np.ndarray,
    has_low: bool,
    low_lead: np.ndarray,
    low: np.ndarray,
    low_offsets: np.ndarray,
    has_high: bool,
    high_lead: np.ndarray,
    high: np.ndarray,
    high_offsets: np.ndarray,
    low_open: bool,
    high_open: bool,
    negated: bool,
    lead: np.ndarray,
    ends: np.ndarray,
    data: np.ndarray,
    first_position: int,
) -> int:
    """Keep the candidates whose bytes lie in the interval, or outside if negated."""
    kept = 0
    offsets[0] = 0
    for row in range(candidate_offsets.size - 1):
        for i in range(candidate_offsets[row], candidate_offsets[row + 1]):
            place = candidates[i] - first_position
            inside = True
            if has_low:
                inside = lead[place] >= low_lead[row]
                if lead[place] == low_lead[row]:
                    order = compare_bytes(
                        data, ends[place], ends[place + 1], low, low_offsets[row], low_offsets[row + 1]
                    )
                    inside = order > 0 or (order == 0 and not low_open)
            if has_high and inside:
                inside = lead[place] <= high_lead[row]
                if lead[place] == high_lead[row]:
                    order = compare_bytes(
                        data, ends[place], ends[place + 1], high, high_offsets[row], high_offsets[row + 1]
                    )
                    inside = order < 0 or (order == 0 and not high_open)
            positions[kept] = candidates[i]
            kept += inside != negated
        offsets[row + 1] = kept
    return kept
