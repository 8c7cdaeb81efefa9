"""What the collector evaluates on candidate pairs: residuals, values that keys only led to, exclusions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Matches
from operators.condition import columns_in, conjunction
from operators.dimension_keys import are_values_needed, is_settled_by_keys
from operators.evaluation import evaluate
from operators.expressions import Column, Expression
from operators.faithful_hashes import FaithfulHashes
from operators.predicate import LEFT, RIGHT, Predicate
from operators.result_order import Answer, pairs_of
from operators.text_settling import Texts, TextSettling

Bool = npt.NDArray[np.bool_]

Int64 = npt.NDArray[np.int64]


class Payload(Protocol):
    """The columns of both sides' rows, by position."""

    def taken(self, pairs: tuple[Int64, Int64], column: Column) -> pa.Array:
        """The values of a column for pairs of left and right positions."""

    def texts(self, side: int, column: str) -> Texts:
        """A column of strings or binary where it lies."""


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

    def bind(self, schemas: tuple[pa.Schema, pa.Schema], payload: Payload) -> PairFilter | None:
        """What there is to evaluate on pairs, given the payload and its schemas; None if the keys decide everything."""
        required = [] if self.predicate.residual is None else [self.predicate.residual]
        settled = []
        for dimension in self.predicate.dimensions:
            # `columns` has asked for both columns if their keys do not settle it
            found = [schema.get_field_index(dimension.column(side)) for side, schema in enumerate(schemas)]
            types = [schema.field(index).type for schema, index in zip(schemas, found, strict=True) if index >= 0]
            if not dimension.made and len(types) == 2 and not is_settled_by_keys(types[0], types[1]):
                settling = TextSettling.of(dimension, types[0], types[1])
                settled += [] if settling is None else [settling]
                required += dimension.expressions if settling is None else []
        excluded = self.predicate.excluded
        if not (required or settled or excluded):
            return None
        return PairFilter(conjunction(required) if required else None, excluded, tuple(settled), payload)


class PairFilter:
    """Keeps the pairs whose texts are `settled`, of which `required` is true and none of `excluded` is."""

    def __init__(
        self,
        required: Expression | None,
        excluded: tuple[Expression, ...],
        settled: tuple[TextSettling, ...],
        payload: Payload,
    ) -> None:
        self._conditions = [] if required is None else [(required, True)]
        self._conditions += [(each, False) for each in excluded]
        self._settled = [
            (each, FaithfulHashes((each.left, each.right), payload) if each.hashed else None) for each in settled
        ]
        self._payload = payload
        self.tested = 0

    def take(self, side: int, rows: pa.RecordBatch) -> None:
        """Payload has come."""
        for _, hashes in self._settled:
            if hashes is not None:
                hashes.take(side, rows)

    def keep(self, side: int, answer: Answer) -> Answer:
        """The pairs of an answer to rows of a side that stay; what has been found to go is not evaluated any more."""
        tested = 0
        for settling, hashes in self._settled:
            if hashes is None or not hashes.hold:
                tested = len(answer.matches.positions)
                texts = (self._payload.texts(LEFT, settling.left), self._payload.texts(RIGHT, settling.right))
                matches = settling.settle(side, answer.first, answer.matches, texts)
                answer = Answer(answer.origin, answer.first, matches)
        for expression, wanted in self._conditions:
            if len(answer.matches.positions):
                tested = max(tested, len(answer.matches.positions))
                column = partial(self._payload.taken, pairs_of(side, answer))
                kept = _is_true(evaluate(expression, column)) == wanted
                if not kept.all():
                    offsets = np.concatenate([[0], np.cumsum(kept)])[answer.matches.offsets]
                    answer = Answer(answer.origin, answer.first, Matches(offsets, answer.matches.positions[kept]))
        self.tested += tested
        return answer


def _is_true(condition: pa.Array) -> Bool:
    return pc.fill_null(condition, False).to_numpy(zero_copy_only=False).astype(np.bool_, copy=True)
