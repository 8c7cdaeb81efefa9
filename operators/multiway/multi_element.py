"""The element of a join of several streams: holds all windows, and finds the results of each step.

In: steps from the gate, one batch per stream, then a punctuation.
Out: result rows in result order, with event time and watermarks in a part of a topology, then the punctuation.

A whole step is stored before its rows probe. That is exact, because each row probes only the rows that are live at it
and come before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from indexes import EVERYWHERE, Live, prepare_kernels
from operators.bounds.bound_dimension import BoundDimension
from operators.bounds.dimension_keys import are_values_needed
from operators.bounds.intervals import bind
from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.work_items import work_through
from operators.multiway.combinations import Combinations, Pipeline, Stage, TooManyError
from operators.multiway.multi_selection import MultiSelection
from operators.multiway.probe_order import best_order, fan_out, observed_shares
from operators.multiway.result_sequence import result_order
from operators.multiway.role_index import RoleIndex
from operators.multiway.role_window import RoleWindow
from operators.query.expressions import Call, Column, Expression, children, columns_in
from operators.query.multi_condition import MultiCondition, Residual
from operators.query.select_items import ComputedItem
from operators.query.windows import Window
from operators.results.collector import RESULT_ROWS
from operators.results.result_times import EVENT_TIME, times_as_column
from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    Emit,
    Facts,
    Origin,
    Punctuation,
    Task,
    TaskContext,
    Time,
    Watermark,
)

MOST = 1 << 21
"""The most combinations that a stage holds; the rows of a step are divided until they fit."""

PIECE_ROWS = 1 << 11
"""So many rows of a step are worth a thread."""


@dataclass(frozen=True, eq=False)
class MultiElement(Bolt):
    """Joins several roles.

    streams:     the stream of each role.
    windows:     the window of each role.
    event_times: the event-time column of each role; None: row numbers.
    timed:       results have an event time, and watermarks follow them.
    time_of:     the role whose row gives a result its event time; None: the latest row.
    indexes:     the index of each role, by its name in the catalogue or configured, or "auto".
    """

    condition: MultiCondition
    streams: tuple[str, ...]
    windows: tuple[Window, ...]
    event_times: tuple[str | None, ...]
    selection: MultiSelection
    timed: bool
    time_of: int | None
    indexes: tuple[str | ConfiguredIndex, ...]
    beside = "sinks"

    @property
    def unordered_streams(self) -> frozenset[str]:  # type: ignore[override]
        """Results are in the order of their latest rows."""
        return frozenset({DEFAULT_STREAM}) if self.timed and self.time_of is not None else frozenset()

    @property
    def note(self) -> str:
        windows = dict.fromkeys(map(str, self.windows))
        if len(windows) == 1:
            return next(iter(windows))
        return " | ".join(f"{role}: {window}" for role, window in zip(self.condition.roles, self.windows, strict=True))

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return MultiTask(self)


@dataclass(frozen=True)
class _Piece:
    """What a thread has found: how many rows have probed, how many combinations they have, and these as result rows."""

    probed: int
    combinations: int
    batches: list[pa.RecordBatch]


class MultiTask(Task):
    """Owns the windows and their indexes. It uses threads, but only while it handles one message."""

    merges_watermarks = False

    def __init__(self, description: MultiElement) -> None:
        self._described = description
        condition = self._condition = description.condition
        self._links = condition.links
        self._roles = [
            RoleWindow(
                role,
                description.windows[role],
                description.event_times[role],
                {number: link for number, link in enumerate(condition.links) if role in link.roles},
                condition.filters[role],
                lambda schema, role=role: self._payload(role, schema),  # type: ignore[misc]
            )
            for role in range(len(condition.roles))
        ]
        self._indexes: dict[tuple[int, tuple[int, ...]], RoleIndex] = {}
        self._bound: list[BoundDimension] | None = None
        self._residuals: list[Residual] = []
        self._shares: dict[int, float] = {}
        self._orders: dict[int, tuple[int, ...]] = {}
        self._pending: dict[str, Batch] = {}
        self._steps = 0
        self._chunk = 1 << 14
        self._next = 0  # the sequence number after the last row
        self._reached: Time | None = None
        self._promised: Time | None = None
        self._emitted = 0
        self._probed = 0
        self._threads = 1 if _calls_a_user(description) else os.cpu_count() or 1

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self._pending[batch.stream] = batch
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        pending, self._pending = self._pending, {}
        for role, stream in zip(self._roles, self._described.streams, strict=True):
            if stream in pending:
                role.append(pending[stream])
        first, self._next = self._next, punctuation.seq + 1
        has_rows = any(batch.num_rows for batch in pending.values())  # where a new life begins there are none
        if has_rows and all(role.schema is not None for role in self._roles):
            behind = [index for index in self._indexes.values() if index.is_behind]
            work_through(behind, RoleIndex.catch_up, self._threads_for(self._next - first))
            self._decide_orders()
            yield from self._results(first, self._next, punctuation.born)
        if has_rows:
            self._reach(pending)
            self._forget(first)
            yield from self._promise()
        yield Emit(punctuation)

    def metrics(self) -> Mapping[str, float]:
        live = {f"{name}_live": float(role.live) for name, role in zip(self._condition.roles, self._roles, strict=True)}
        windows = zip(self._condition.roles, self._described.windows, strict=True)
        most = {f"{name}_window": float(window.rows) for name, window in windows if window.rows is not None}
        return {
            "results": float(self._emitted),
            "answered": float(self._next),
            "combinations": float(self._probed),
            "payload_bytes": float(sum(role.nbytes for role in self._roles)),
            **live,
            **most,
        }

    def details(self) -> Facts:
        """The order in which each stream's rows probe the others, and what they are expected to find."""
        names = self._condition.roles
        live = [role.live for role in self._roles]
        orders = {}
        for latest, order in dict(self._orders).items():
            bound, stages = {latest}, []
            for role in order:
                found = fan_out(bound, role, self._links, self._shares, live)
                stages.append({"stream": names[role], "finds": round(found, 3), "index": self._index_name(bound, role)})
                bound.add(role)
            orders[names[latest]] = stages
        return {"orders": orders}

    def check_invariants(self) -> None:
        for role in self._roles:
            role.check_invariants()
        for index in self._indexes.values():
            index.check_invariants()

    # --- what runs ---------------------------------------------------------------------------------

    def _payload(self, role: int, schema: pa.Schema) -> list[str]:
        """The columns of a role that results show, or that combinations are tested by."""
        name = self._condition.roles[role]
        names = self._described.selection.needed_columns(role, schema)
        for residual in self._condition.residuals:
            names += [column.name for column in columns_in(residual.expression) if column.stream == name]
        for link in self._links:
            if role in link.roles:
                column = link.dimension.column(link.side(role))
                names += [column] if are_values_needed(schema.field(column).type) else []
        return list(dict.fromkeys(names))

    def _decide_orders(self) -> None:
        """Sample the links and choose the orders: at the first steps, and then from time to time."""
        if self._bound is None:
            self._bind()
        assert self._bound is not None
        self._steps += 1
        if self._orders and self._steps & (self._steps - 1) and self._steps % 64:
            return
        self._shares = observed_shares(self._links, self._bound, self._roles)
        live = [role.live for role in self._roles]
        roles = range(len(self._roles))
        self._orders = {role: best_order(role, self._links, self._shares, live) for role in roles}
        used = set()
        for latest, order in self._orders.items():
            bound = {latest}
            for role in order:
                used.add((role, self._links_to(bound, role)))
                bound.add(role)
        self._indexes = {key: index for key, index in self._indexes.items() if key in used}

    def _bind(self) -> None:
        """Bind the links to the types of their columns; what keys do not decide is tested."""
        self._bound = []
        self._residuals = list(self._condition.residuals)
        for link in self._links:
            kinds = []
            for side, role in enumerate(link.roles):
                schema = self._roles[role].schema
                assert schema is not None, "every role has a schema"
                kinds.append(schema.field(link.dimension.column(side)).type)
            bound = bind(link.dimension, *kinds)
            self._bound.append(bound)
            if bound.settles and not (link.null_safe or link.dimension.is_computed):  # those are among the residuals
                self._residuals += [Residual(frozenset(link.roles), each) for each in link.dimension.expressions]

    def _pipeline(self, latest: int) -> Pipeline:
        assert self._bound is not None
        bound, stages = {latest}, []
        for role in self._orders[latest]:
            fresh = [each for each in self._residuals if role in each.roles and each.roles <= bound | {role}]
            same = [other for other in bound if self._described.streams[other] == self._described.streams[role]]
            apart = tuple(other for other in same if other != latest)  # all others come before the latest row
            stages.append(Stage(role, self._index(bound, role), tuple(fresh), apart))
            bound.add(role)
        return Pipeline(self._condition.roles, self._roles, self._links, self._bound, stages)

    def _index(self, bound: set[int], role: int) -> RoleIndex:
        """The index of a role by its links to roles that are bound."""
        links = self._links_to(bound, role)
        if (role, links) not in self._indexes:
            rows = self._described.windows[role].rows
            self._indexes[role, links] = RoleIndex(self._roles[role], links, rows, self._described.indexes[role])
        return self._indexes[role, links]

    def _index_name(self, bound: set[int], role: int) -> str:
        index = self._indexes.get((role, self._links_to(bound, role)))
        return "" if index is None else index.choice.index

    def _links_to(self, bound: set[int], role: int) -> tuple[int, ...]:
        """The links of a role to roles that are bound."""
        links = enumerate(self._links)
        return tuple(number for number, link in links if role in link.roles and link.other(role) in bound)

    # --- results -----------------------------------------------------------------------------------

    def _results(self, first: int, end: int, born: float) -> Iterator[Emit]:
        """The results of the rows with sequence numbers in [first, end), a piece at a time."""
        pipelines = [self._pipeline(role) for role in range(len(self._roles))]
        while first < end:
            last = min(end, first + self._chunk)
            threads = self._threads_for(last - first)
            bounds = [first + (last - first) * number // threads for number in range(threads + 1)]
            limit = EVERYWHERE if last - first == 1 else MOST // threads
            try:
                found = work_through(pairwise(bounds), partial(self._piece, pipelines, limit), threads)
            except TooManyError:
                self._chunk = max(1, (last - first) // 2)
                continue
            for piece in found:
                self._probed += piece.probed
                for rows in piece.batches:
                    yield Emit(Batch(DEFAULT_STREAM, rows, first=self._emitted, born=born))
                    self._emitted += rows.num_rows
            if sum(piece.combinations for piece in found) < MOST // 4:
                self._chunk = min(1 << 17, self._chunk * 2)
            first = last

    def _threads_for(self, rows: int) -> int:
        """How many threads are worth their start."""
        return max(1, min(self._threads, rows // PIECE_ROWS))

    def _piece(self, pipelines: list[Pipeline], limit: int, between: tuple[int, int]) -> _Piece:
        """The results of the rows with these sequence numbers. Several threads work on pieces of a step."""
        probed, found = 0, []
        for role, pipeline in enumerate(pipelines):
            entering, lives = self._entering(role, *between)
            if len(entering):
                probed += len(entering)
                found.append((role, pipeline.run(entering, lives, limit)))
        found = [(role, each) for role, each in found if len(each)]
        return _Piece(probed, sum(len(each) for _, each in found), self._ordered(found) if found else [])

    def _entering(self, latest: int, first: int, end: int) -> tuple[Combinations, dict[int, Live]]:
        """The rows of a role with these sequence numbers that pass its filter, and what is live at each row."""
        role = self._roles[latest]
        start, stop = role.between(first, end)
        positions = np.arange(start, stop)
        if start == stop:
            return Combinations({latest: positions}, positions), {}
        seqs, times = role.seqs(positions), role.times(positions)
        lives = {}
        for other in self._orders[latest]:
            before = self._roles[other].before(seqs)
            lives[other] = Live(self._roles[other].first_live(before, times), before)
        passing = np.flatnonzero(role.passing(positions))
        return Combinations({latest: positions[passing]}, passing), lives

    def _ordered(self, found: list[tuple[int, Combinations]]) -> list[pa.RecordBatch]:
        """The result rows of combinations, given with the role of their latest rows, in result order."""
        roles = range(len(self._roles))
        if len(found) == 1:
            ((own, only),) = found
            positions, latest = [only.positions[role] for role in roles], np.full(len(only), own)
            # the positions of a role are in the order of its sequence numbers
            places, others = positions[own], [positions[role] for role in roles if role != own]
        else:
            positions = [np.concatenate([each.positions[role] for _, each in found]) for role in roles]
            latest = np.repeat([role for role, _ in found], [len(each) for _, each in found])
            stacked = np.stack([self._roles[role].seqs(positions[role]) for role in roles])
            places = stacked[latest, np.arange(len(latest))]
            # the others in FROM order: column n skips the latest row's own role
            others = [np.where(latest > place, stacked[place], stacked[place + 1]) for place in roles[:-1]]
            others.append(latest)
        order = result_order(places, others)
        if order is not None:
            positions, latest = [each[order] for each in positions], latest[order]
        parts = [slice(start, start + RESULT_ROWS) for start in range(0, len(latest), RESULT_ROWS)]
        return [self._rows([each[part] for each in positions], latest[part]) for part in parts]

    def _rows(self, positions: list[np.ndarray], latest: np.ndarray) -> pa.RecordBatch:
        schemas = {role.number: role.schema for role in self._roles if role.schema is not None}

        def column(wanted: Column) -> pa.Array:
            role = self._condition.roles.index(wanted.stream or "")
            return self._roles[role].column(wanted.name, positions[role])

        rows = self._described.selection.rows(schemas, column, len(latest))
        return rows.append_column(EVENT_TIME, self._times(positions, latest)) if self._described.timed else rows

    def _times(self, positions: list[np.ndarray], latest: np.ndarray) -> pa.Array:
        """The event times of results."""
        of = self._described.time_of
        kind = self._roles[of or 0].time_type
        kind = pa.int64() if pa.types.is_integer(kind) else kind
        if of is not None:
            return times_as_column(self._roles[of].times(positions[of]), kind)
        times = np.stack([role.times(positions[role.number]) for role in self._roles])
        return times_as_column(times[latest, np.arange(len(latest))], kind)

    # --- time --------------------------------------------------------------------------------------

    def _reach(self, pending: Mapping[str, Batch]) -> None:
        """Note the event time of the last row of the step."""
        for role, stream in zip(self._roles, self._described.streams, strict=True):
            if stream in pending and pending[stream].num_rows:
                last = role.times(np.array([role.end - 1]))[0].item()
                self._reached = last if self._reached is None else max(self._reached, last)

    def _forget(self, first: int) -> None:
        """Drop the rows that no later row can meet: those that are not live at the last rows of the step."""
        known = [role for role in self._roles if role.schema is not None]
        for role in known:
            borders = [role.base]
            for other in known:
                start, stop = other.between(first, self._next)
                if start < stop:
                    last = np.array([stop - 1])
                    before = role.before(other.seqs(last))
                    borders.append(int(role.first_live(before, other.times(last))[0]))
            role.drop_before(max(borders))
        for index in self._indexes.values():
            index.expire()

    def _promise(self) -> Iterator[Emit]:
        """Emit a watermark if the event time of all results that follow has risen."""
        time, of = self._reached, self._described.time_of
        if of is not None and time is not None:
            first = self._roles[of].first_time()
            time = time if first is None else min(time, first)
        if self._described.timed and time is not None and (self._promised is None or time > self._promised):
            self._promised = time
            yield Emit(Watermark(time, DEFAULT_STREAM))


def _calls_a_user(described: MultiElement) -> bool:
    """Whether results take functions of the user's own, which may not bear two calls at once."""
    computed = [item.expression for item in described.selection.items if isinstance(item, ComputedItem)]
    return any(map(_has_calls, [described.condition.written, *computed]))


def _has_calls(expression: Expression) -> bool:
    return isinstance(expression, Call) or any(map(_has_calls, children(expression)))
