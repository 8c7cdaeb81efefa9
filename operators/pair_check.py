"""What the collector evaluates on candidate pairs: residuals, values that keys only led to, exclusions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from operators.condition import columns_in, conjunction
from operators.dimension_keys import are_values_needed, is_settled_by_keys
from operators.evaluation import evaluate
from operators.expressions import Column, Expression
from operators.predicate import Predicate

Bool = npt.NDArray[np.bool_]

Taken = Callable[[Column, npt.NDArray[np.int64] | None], pa.Array]
"""The values of a column for the pairs, or for some of them."""


@dataclass(frozen=True)
class PairCheck:
    """The conditions of one alternative that its keys leave open."""

    predicate: Predicate

    def columns(self, side: int, schema: pa.Schema) -> list[str]:
        """The columns of a side that it may need, given the side's schema."""
        role = (self.predicate.left, self.predicate.right)[side]
        names = [
            dimension.column(side)
            for dimension in self.predicate.dimensions
            if not dimension.made and are_values_needed(schema.field(dimension.column(side)).type)
        ]
        residual = () if self.predicate.residual is None else (self.predicate.residual,)
        for expression in (*residual, *self.predicate.excluded):
            names += [column.name for column in columns_in(expression) if column.stream == role]
        return list(dict.fromkeys(names))

    def bind(self, schemas: tuple[pa.Schema, pa.Schema]) -> PairFilter | None:
        """What there is to evaluate on pairs whose payload has these schemas; None if the keys decide everything."""
        required = [] if self.predicate.residual is None else [self.predicate.residual]
        for dimension in self.predicate.dimensions:
            # `columns` has asked for both columns if their keys do not settle it
            found = [schema.get_field_index(dimension.column(side)) for side, schema in enumerate(schemas)]
            types = [schema.field(index).type for schema, index in zip(schemas, found, strict=True) if index >= 0]
            if not dimension.made and len(types) == 2 and not is_settled_by_keys(types[0], types[1]):
                required += dimension.expressions
        excluded = self.predicate.excluded
        return PairFilter(conjunction(required) if required else None, excluded) if required or excluded else None


@dataclass(frozen=True)
class PairFilter:
    """Keeps the pairs of which `required` is true and none of `excluded` is."""

    required: Expression | None
    excluded: tuple[Expression, ...] = ()

    def keep(self, pairs: int, taken: Taken) -> Bool:
        """For each pair whether it stays."""
        kept = np.ones(pairs, np.bool_)
        if self.required is not None:
            kept = _is_true(evaluate(self.required, lambda column: taken(column, None)))
        for expression in self.excluded:
            some = np.flatnonzero(kept)
            if len(some):
                kept[some] = ~_is_true(evaluate(expression, partial(_of_some, taken, some)))
        return kept


def _of_some(taken: Taken, some: npt.NDArray[np.int64], column: Column) -> pa.Array:
    return taken(column, some)


def _is_true(condition: pa.Array) -> Bool:
    return pc.fill_null(condition, False).to_numpy(zero_copy_only=False).astype(np.bool_, copy=True)
