"""Conditions that keys do not decide: they are evaluated on candidate pairs, and need columns of both sides."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from operators.bounds.dimension_keys import are_values_needed
from operators.query.condition import columns_in
from operators.query.predicate import Predicate


@dataclass(frozen=True)
class PairCheck:
    """The conditions of one alternative that its keys do not decide."""

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
