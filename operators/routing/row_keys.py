"""From rows to keys and intervals. Types and conditions end here; everything downstream compares numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Interval, Keys
from operators.bounds.bound_dimension import BoundDimension
from operators.bounds.dimension_keys import key_maker
from operators.bounds.intervals import bind
from operators.protocol.sides import LEFT, RIGHT
from operators.query.predicate import Dimension, Predicate
from operators.routing.key_ordinals import KeyedRows
from operators.routing.step_rows import StepRows
from operators.values.evaluation import evaluate
from topology import Batch

_Maker = Callable[[pa.RecordBatch, KeyedRows | None], Keys]

Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class StepKeys:
    """For the rows of each side their keys and intervals, one of each per dimension."""

    keys: tuple[tuple[Keys, ...], tuple[Keys, ...]]
    intervals: tuple[tuple[Interval, ...], tuple[Interval, ...]]


class RowKeys:
    """Makes the keys and intervals of one alternative of a condition.

    A row that fails its side's filter has no valid key in the first dimension. It keeps its position, but is not stored
    and meets nothing.
    """

    def __init__(self, predicate: Predicate) -> None:
        self._predicate = predicate
        self._dimensions = predicate.dimensions
        self._schemas: list[pa.Schema | None] = [None, None]
        self._bound: list[BoundDimension | None] | None = None
        self._makers: list[list[_Maker]] = [[], []]  # of each side, known with its schema

    @property
    def decide(self) -> bool:
        """Whether keys alone decide what matches: the types are known, and 64 bits hold their values."""
        return self._bound is not None and not any(bound is not None and bound.settles for bound in self._bound)

    def take(self, step: StepRows, keyed: tuple[KeyedRows, KeyedRows] | None) -> StepKeys:
        """The keys of a step's rows. Cost: O(rows) per dimension, and that of the filters.

        keyed: the ordinals of the rows, where a dimension is made of them.
        """
        for side in (LEFT, RIGHT):
            batch = step.batches[side]
            if batch is not None and self._schemas[side] is None:
                self._schemas[side] = batch.rows.schema
                self._makers[side] = [self._maker(dimension, side, batch.rows.schema) for dimension in self._dimensions]
        left, right = self._schemas
        if self._bound is None and left is not None and right is not None:
            self._bound = [
                None
                if dimension.made
                else bind(dimension, left.field(dimension.left).type, right.field(dimension.right).type)
                for dimension in self._dimensions
            ]
        own = (None, None) if keyed is None else keyed
        keys = (self._keys(LEFT, step.batches[LEFT], own[LEFT]), self._keys(RIGHT, step.batches[RIGHT], own[RIGHT]))
        return StepKeys(
            keys, (self._intervals(LEFT, keys[LEFT], own[LEFT]), self._intervals(RIGHT, keys[RIGHT], own[RIGHT]))
        )

    def _keys(self, side: int, batch: Batch | None, keyed: KeyedRows | None) -> tuple[Keys, ...]:
        if batch is None:
            return ()
        rows = batch.rows
        keys = [make(rows, keyed) for make in self._makers[side]]
        passing = self._passing(side, rows)
        if passing is not None:
            first = keys[0]
            keys[0] = Keys(first.values, passing if first.valid is None else first.valid & passing)
        return tuple(keys)

    def _maker(self, dimension: Dimension, side: int, schema: pa.Schema) -> _Maker:
        """A function from rows of a side, which all have one schema, to their keys in a dimension."""
        if dimension.made:
            return lambda rows, keyed: self._made(rows.num_rows, dimension, keyed)
        column = schema.get_field_index(dimension.column(side))
        make = key_maker(dimension, side, schema.field(column).type)
        return lambda rows, keyed: make(rows.column(column))

    def _passing(self, side: int, rows: pa.RecordBatch) -> Bool | None:
        condition = self._predicate.filters[side]
        if condition is None:
            return None
        found = evaluate(condition, lambda column: rows.column(column.name), rows.num_rows)
        passing: Bool = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
        return passing

    def _intervals(self, side: int, keys: tuple[Keys, ...], keyed: KeyedRows | None) -> tuple[Interval, ...]:
        if self._bound is None:  # the other side has no rows yet: nothing to meet
            nothing = [(np.full(len(one), 1), np.full(len(one), 0)) for one in keys]
            return tuple(Interval(low, high) for low, high in nothing)
        asked = []
        for dimension, bound, one in zip(self._dimensions, self._bound, keys, strict=True) if keys else ():
            if bound is not None:
                asked.append(bound.intervals(side, one))
            else:
                asked.append(self._all(one) if dimension.made == "constant" or keyed is None else keyed.asked)
        return tuple(asked)

    @staticmethod
    def _made(rows: int, dimension: Dimension, keyed: KeyedRows | None) -> Keys:
        if dimension.made == "ordinal":
            assert keyed is not None, "a dimension of ordinals has a window per key"
            return keyed.ordinals
        return Keys(np.zeros(rows, np.int64))

    @staticmethod
    def _all(keys: Keys) -> Interval:
        """The constant key, for every row that may meet anything."""
        low = np.zeros(len(keys), np.int64)
        return Interval(low if keys.valid is None else np.where(keys.valid, 0, 1), low)
