"""Finds the combinations that belong to rows of one stream: a pipeline of probes through the windows of the others.

Rows of the stream enter. At each stage every combination so far probes the window of one more stream, by all links to
the streams that it has. What keys do not decide is evaluated when all its streams are there. No combination is stored
for later: the rows of the windows are, and each row that arrives finds its combinations again from the start.

Paper: "Maximizing the Output Rate of Multi-Way Join Queries over Streaming Information Sources", Viglas, Naughton,
Burger, VLDB 2003, section 3 (MJoin): one probing sequence per stream. Where we depart: the unit is a batch, windows are
those at the latest row (each combination carries the live range of every window), and links may be any intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Interval, Live, Matches
from operators.bounds.bound_dimension import BoundDimension
from operators.multiway.role_index import RoleIndex
from operators.multiway.role_window import MISSING, RoleWindow
from operators.protocol.columns import Int64
from operators.query.expressions import Column
from operators.query.multi_condition import Link, Residual, column_of
from operators.values.evaluation import evaluate


class TooManyError(Exception):
    """There are more combinations than the caller has memory for."""


@dataclass(frozen=True)
class Combinations:
    """Rows of several roles, combined: for each role that is bound, the position of its row in each combination."""

    positions: Mapping[int, Int64]
    rows: Int64
    """The number of each combination's latest row among those that entered."""

    def __len__(self) -> int:
        return len(self.rows)

    def taken(self, which: Int64 | np.ndarray) -> Combinations:
        """Some of them, by number or by flag."""
        return Combinations({role: each[which] for role, each in self.positions.items()}, self.rows[which])


@dataclass(frozen=True)
class Stage:
    """One more role: its index, and for each link of the index the role at the other end.

    residuals: what can be evaluated from here on.
    apart:     roles of the same stream that are bound before; a row does not meet itself.
    """

    role: int
    index: RoleIndex
    residuals: tuple[Residual, ...]
    apart: tuple[int, ...]


class Pipeline:
    """The probes for rows of one role, in some order.

    lives: given the roles of the stages, the live range of each at the rows that enter.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        roles: Sequence[RoleWindow],
        links: Sequence[Link],
        bound: Sequence[BoundDimension],
        stages: Sequence[Stage],
    ) -> None:
        self._names = names
        self._roles = roles
        self._links = links
        self._bound = bound
        self._stages = stages

    def run(self, entering: Combinations, lives: Mapping[int, Live], limit: int) -> Combinations:
        """The whole combinations of these rows; raises `TooManyError` if a stage finds more than `limit`."""
        found = entering
        for stage in self._stages:
            found = self._extend(found, stage, lives[stage.role], limit)
            if not len(found):
                break
        if len(found.positions) == len(self._roles):
            return found
        nobody = np.empty(0, np.int64)
        return Combinations(dict.fromkeys(range(len(self._roles)), nobody), nobody)

    def _extend(self, found: Combinations, stage: Stage, live: Live, limit: int) -> Combinations:
        intervals = [self._interval(link, stage.role, found) for link in stage.index.links]
        all_enter = len(found.positions) == 1 and len(found) == len(live)
        at = live if all_enter else Live(live.start[found.rows], live.end[found.rows])
        matches = _answers(stage.index, limit, intervals, at, found.rows)
        if matches is None:
            raise TooManyError
        counts = matches.counts()
        positions = {role: np.repeat(each, counts) for role, each in found.positions.items()}
        found = Combinations({**positions, stage.role: matches.positions}, np.repeat(found.rows, counts))
        for other in stage.apart:
            found = found.taken(found.positions[other] != found.positions[stage.role])
        for residual in stage.residuals:
            if len(found):
                truth = evaluate(residual.expression, self._column(found), len(found))
                found = found.taken(pc.fill_null(truth, False).to_numpy(zero_copy_only=False).astype(np.bool_))
        return found

    def _interval(self, link: int, role: int, found: Combinations) -> Interval:
        """The keys of a role that match each combination, by one link."""
        other = self._links[link].other(role)
        keys = self._roles[other].keys(link, found.positions[other])
        interval = self._bound[link].intervals(self._links[link].side(other), keys)
        if keys.valid is None or not self._links[link].null_safe:
            return interval
        low, high = (np.where(keys.valid, end, end.dtype.type(MISSING)) for end in (interval.low, interval.high))
        return Interval(low, high)

    def _column(self, found: Combinations) -> Callable[[Column], pa.Array]:
        def column(wanted: Column) -> pa.Array:
            role, name = column_of(wanted, self._names)
            return self._roles[role].column(name, found.positions[role])

        return column


def _answers(index: RoleIndex, limit: int, intervals: Sequence[Interval], live: Live, rows: Int64) -> Matches | None:
    """What each combination meets. One that asks what the one before it asked, as where keys are equal, has its answer.

    rows: the latest row of each combination; those of one row have the same live range.
    """
    same = rows[1:] == rows[:-1]
    if not same.any():
        return index.probe_within(limit, intervals, live)
    for interval in intervals:
        same &= (interval.low[1:] == interval.low[:-1]) & (interval.high[1:] == interval.high[:-1])
    if 4 * np.count_nonzero(same) < len(rows):
        return index.probe_within(limit, intervals, live)
    asks = np.concatenate([[True], ~same])
    asking = np.flatnonzero(asks)
    distinct = [Interval(each.low[asking], each.high[asking], each.negated) for each in intervals]
    found = index.probe_within(limit, distinct, Live(live.start[asking], live.end[asking]))
    return None if found is None else _spread(found, np.cumsum(asks) - 1, limit)


def _spread(found: Matches, answers: Int64, limit: int) -> Matches | None:
    """The matches of combinations, given the number of each one's answer; None if there are more than `limit`."""
    counts = found.counts()[answers]
    offsets = np.zeros(len(answers) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    if offsets[-1] > limit:
        return None
    places = np.arange(offsets[-1]) + np.repeat(found.offsets[answers] - offsets[:-1], counts)
    return Matches(offsets, found.positions[places])
