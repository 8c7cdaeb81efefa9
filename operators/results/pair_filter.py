"""Evaluates on candidate pairs what keys do not decide: residuals, values that keys only approximate, exclusions."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Matches
from operators.bounds.dimension_keys import is_settled_by_keys
from operators.protocol.sides import LEFT, RIGHT
from operators.query.condition import conjunction
from operators.query.expressions import Column, Expression
from operators.query.predicate import Predicate
from operators.results.faithful_hashes import FaithfulHashes
from operators.results.result_order import Answer, pairs_of
from operators.results.text_settling import Texts, TextSettling
from operators.values.evaluation import evaluate

Bool = npt.NDArray[np.bool_]

Int64 = npt.NDArray[np.int64]


class Payload(Protocol):
    """The columns of both sides' rows, by position."""

    def taken(self, pairs: tuple[Int64, Int64], column: Column) -> pa.Array:
        """The values of a column for pairs of left and right positions."""

    def texts(self, side: int, column: str) -> Texts:
        """A column of strings or binary, in place."""


def bind_filter(predicate: Predicate, schemas: tuple[pa.Schema, pa.Schema], payload: Payload) -> PairFilter | None:
    """The filter for pairs, given the payload and its schemas; None if the keys decide everything."""
    required = [] if predicate.residual is None else [predicate.residual]
    settled = []
    for dimension in predicate.dimensions:
        if dimension.is_computed:  # the residual settles it
            continue
        # `columns` has asked for both columns if their keys do not settle it
        found = [schema.get_field_index(dimension.column(side)) for side, schema in enumerate(schemas)]
        types = [schema.field(index).type for schema, index in zip(schemas, found, strict=True) if index >= 0]
        if not dimension.made and len(types) == 2 and not is_settled_by_keys(types[0], types[1]):
            settling = TextSettling.of(dimension, types[0], types[1])
            settled += [] if settling is None else [settling]
            required += dimension.expressions if settling is None else []
    excluded = predicate.excluded
    if not (required or settled or excluded):
        return None
    return PairFilter(conjunction(required) if required else None, excluded, tuple(settled), payload)


class PairFilter:
    """Keeps the pairs whose texts pass `settled`, for which `required` is true and none of `excluded` is."""

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
        """Take new payload of a side."""
        for _, hashes in self._settled:
            if hashes is not None:
                hashes.take(side, rows)

    def keep(self, side: int, answer: Answer) -> Answer:
        """The pairs of an answer to rows of a side that pass. A pair that fails one condition skips the others."""
        tested = 0
        for settling, hashes in self._settled:
            if hashes is None or not hashes.hold:
                tested = len(answer.matches.positions)
                texts = (self._payload.texts(LEFT, settling.left), self._payload.texts(RIGHT, settling.right))
                answer = answer.filled()
                answer = answer.with_matches(settling.settle(side, answer.first, answer.matches, texts))
        for expression, wanted in self._conditions:
            if len(answer.matches.positions):
                tested = max(tested, len(answer.matches.positions))
                column = partial(self._payload.taken, pairs_of(side, answer))
                kept = _is_true(evaluate(expression, column, len(answer.matches.positions))) == wanted
                if not kept.all():
                    offsets = np.concatenate([[0], np.cumsum(kept)])[answer.matches.offsets]
                    answer = answer.with_matches(Matches(offsets, answer.matches.positions[kept]))
        self.tested += tested
        return answer


def _is_true(condition: pa.Array) -> Bool:
    return pc.fill_null(condition, False).to_numpy(zero_copy_only=False).astype(np.bool_, copy=True)
