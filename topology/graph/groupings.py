"""Groupings: which task of the consumer gets which rows.

The law of every grouping except `All`: each row goes to exactly one task, and the rows of one task keep their order.
A grouping is a frozen description; `partitioner` makes the small stateful part for one producer task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topology.graph.errors import GroupingError
from topology.graph.hashing import stable_hash
from topology.graph.messages import Batch

Assignment = npt.NDArray[np.int64]


class Partitioner(ABC):
    """Splits batches among the consumer's tasks; each producer task has one per edge.

    always: the tasks that get every batch whole, whatever it holds; None: it depends on the batch.
    """

    always: tuple[int, ...] | None = None

    @abstractmethod
    def split(self, batch: Batch, to: int | None) -> Iterator[tuple[int, Batch]]:
        """Yield (task, rows for it) pairs."""

    def state(self) -> list[int]:
        """Return what later choices depend on beside the rows; nothing by default."""
        return []

    def resume(self, state: list[int]) -> None:
        """Go on from a state."""
        return


@dataclass(frozen=True)
class Grouping(ABC):
    """Chooses among the consumer's tasks, for one edge."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns that the grouping reads."""
        return ()

    keeps_batches: ClassVar[bool] = True
    """Whether a batch goes to a task as a whole."""

    @abstractmethod
    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        """Make the stateful part. `local`: the consumer's tasks on the producer's machine."""


@dataclass(frozen=True)
class Shuffle(Grouping):
    """Tasks get whole batches in turn, so each gets an equal share of them."""

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _InTurn(list(range(tasks)), producer)


@dataclass(frozen=True)
class LocalOrShuffle(Grouping):
    """Tasks on the producer's own machine get batches in turn; if there are none, as `Shuffle`."""

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _InTurn(list(local) or list(range(tasks)), producer)


@dataclass(frozen=True)
class All(Grouping):
    """Every task gets every row."""

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _Everyone(tasks)


@dataclass(frozen=True)
class Global(Grouping):
    """All rows go to the first task."""

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _Chosen(0, tasks)


@dataclass(frozen=True)
class Direct(Grouping):
    """The producer names the task with each batch (`Emit(batch, to=...)`)."""

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _Chosen(None, tasks)


@dataclass(frozen=True)
class Fields(Grouping):
    """Rows with equal values in `columns` go to the same task, by a hash that is the same in every process."""

    keeps_batches: ClassVar[bool] = False

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names(self.columns))

    @property
    def fields(self) -> tuple[str, ...]:
        return self.columns

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _ByRow(lambda rows: _bucket(rows, self.columns, 0, tasks), tasks)


@dataclass(frozen=True)
class PartialKey(Grouping):
    """Each key has two candidate tasks; its rows in a batch go to the one that this producer has sent fewer rows to.

    This balances skewed keys. A component downstream has to merge the two halves of a key.
    """

    keeps_batches: ClassVar[bool] = False

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names(self.columns))

    @property
    def fields(self) -> tuple[str, ...]:
        return self.columns

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _TwoChoices(self.columns, tasks)


@dataclass(frozen=True)
class Custom(Grouping):
    """A function from (rows, number of tasks) to the task of each row."""

    keeps_batches: ClassVar[bool] = False

    assign: Callable[[pa.RecordBatch, int], Sequence[int] | Assignment]

    def partitioner(self, tasks: int, producer: int = 0, local: Sequence[int] = ()) -> Partitioner:
        return _ByRow(lambda rows: np.asarray(self.assign(rows, tasks), dtype=np.int64), tasks)


class _InTurn(Partitioner):
    def __init__(self, tasks: list[int], start: int) -> None:
        self._tasks = tasks
        self._next = start % len(tasks)
        if len(tasks) == 1:
            self.always = (tasks[0],)

    def split(self, batch: Batch, to: int | None) -> Iterator[tuple[int, Batch]]:
        yield self._tasks[self._next], batch
        self._next = (self._next + 1) % len(self._tasks)

    def state(self) -> list[int]:
        return [self._next]

    def resume(self, state: list[int]) -> None:
        (self._next,) = state


class _Everyone(Partitioner):
    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self.always = tuple(range(tasks))

    def split(self, batch: Batch, to: int | None) -> Iterator[tuple[int, Batch]]:
        for task in range(self._tasks):
            yield task, batch


class _Chosen(Partitioner):
    def __init__(self, fixed: int | None, tasks: int) -> None:
        self._fixed = fixed
        self._tasks = tasks
        if fixed is not None:
            self.always = (fixed,)

    def split(self, batch: Batch, to: int | None) -> Iterator[tuple[int, Batch]]:
        chosen = to if self._fixed is None else self._fixed
        if chosen is None or not 0 <= chosen < self._tasks:
            raise GroupingError(
                f"stream '{batch.stream}' has direct grouping: name a task from 0 to {self._tasks - 1} "
                f"with Emit(batch, to=...), not {chosen}"
            )
        yield chosen, batch


class _ByRow(Partitioner):
    def __init__(self, assign: Callable[[pa.RecordBatch], Assignment], tasks: int) -> None:
        self._assign = assign
        self._tasks = tasks

    def split(self, batch: Batch, to: int | None) -> Iterator[tuple[int, Batch]]:
        if batch.rows.num_rows == 0:
            return
        chosen = self._assign(batch.rows)
        if len(chosen) != batch.rows.num_rows or chosen.min() < 0 or chosen.max() >= self._tasks:
            raise GroupingError(
                f"the grouping of stream '{batch.stream}' must give each of the {batch.rows.num_rows} rows "
                f"a task from 0 to {self._tasks - 1}"
            )
        yield from _scatter(batch, chosen, self._tasks)


class _TwoChoices(Partitioner):
    def __init__(self, columns: tuple[str, ...], tasks: int) -> None:
        self._columns = columns
        self._tasks = tasks
        self._sent = np.zeros(tasks, dtype=np.int64)

    def split(self, batch: Batch, to: int | None) -> Iterator[tuple[int, Batch]]:
        if batch.rows.num_rows == 0:
            return
        one = _bucket(batch.rows, self._columns, 0, self._tasks)
        # The other choice is counted from the one, so it is a different task for every key.
        away = 1 + _bucket(batch.rows, self._columns, 1, max(1, self._tasks - 1))
        other = (one + away) % self._tasks
        chosen = np.where(self._sent[one] <= self._sent[other], one, other)
        self._sent += np.bincount(chosen, minlength=self._tasks)
        yield from _scatter(batch, chosen, self._tasks)

    def state(self) -> list[int]:
        sent: list[int] = self._sent.tolist()
        return sent

    def resume(self, state: list[int]) -> None:
        self._sent = np.array(state, dtype=np.int64)


def _names(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Accept a single name too, which is not a sequence of letters."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _bucket(rows: pa.RecordBatch, columns: tuple[str, ...], seed: int, tasks: int) -> Assignment:
    missing = [name for name in columns if name not in rows.schema.names]
    if missing:
        raise GroupingError(f"rows are grouped by '{missing[0]}' but have only: {', '.join(rows.schema.names)}")
    hashes = stable_hash([rows.column(name) for name in columns], seed)
    return (hashes % np.uint64(tasks)).astype(np.int64)


def _scatter(batch: Batch, chosen: Assignment, tasks: int) -> Iterator[tuple[int, Batch]]:
    """Split a batch by row; one stable sort keeps the order of the rows of each task."""
    counts = np.bincount(chosen, minlength=tasks)
    if counts.max() == len(chosen):
        yield int(chosen[0]), batch
        return
    rows = batch.rows.take(pa.array(np.argsort(chosen, kind="stable")))
    start = 0
    for task, count in enumerate(counts):
        if count:
            part = rows.slice(start, count)
            yield task, batch.with_rows(part)
        start += int(count)
