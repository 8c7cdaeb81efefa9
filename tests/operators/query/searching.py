"""Searches all pairs of two small tables by the normal form of a condition, without engines or a runtime.

Each branch goes through the stages of the router, an element and the collector: filters on the rows of each side, then
intervals of keys for each probe row, then, on the pairs found, values, the residual and the exclusions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from operators.bounds.intervals import bind
from operators.query.condition import Condition
from operators.query.expressions import Column, Expression
from operators.query.predicate import Predicate
from operators.values.evaluation import evaluate
from tests.oracle_order import taken

Counts = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Tables = tuple[pa.Table, pa.Table]


def times_found(condition: Condition, tables: Tables, probe_side: int) -> Counts:
    """How often each pair is found: by left row, then by right row. An exact search finds a match once.

    probe_side: the side whose rows ask for intervals of the other side's keys.
    """
    found = [_found(branch, tables, probe_side) for branch in condition.branches]
    return np.sum([one.astype(np.int64) for one in found], axis=0)


def truths(expression: Expression, roles: tuple[str, str], tables: Tables) -> list[bool | None]:
    """The condition evaluated on each pair, by left row, then by right row."""
    lefts, rights = np.indices((tables[0].num_rows, tables[1].num_rows)).reshape(2, -1)

    def column(each: Column) -> pa.Array:
        side = roles.index(each.stream or "")
        return taken(tables[side][each.name], pa.array((lefts, rights)[side])).combine_chunks()

    result: list[bool | None] = evaluate(expression, column).to_pylist()
    return result


def _found(branch: Predicate, tables: Tables, probe_side: int) -> Bools:
    roles = (branch.left, branch.right)
    shape = (tables[0].num_rows, tables[1].num_rows)

    def is_true(expression: Expression) -> Bools:
        found = [truth is True for truth in truths(expression, roles, tables)]
        return np.array(found, dtype=bool).reshape(shape)

    kept = np.ones(shape, dtype=bool)
    for side, condition in enumerate(branch.filters):
        if condition is not None:
            rows = pc.fill_null(evaluate(condition, lambda each, side=side: tables[side][each.name]), False)  # type: ignore[misc]
            passing = rows.to_numpy(zero_copy_only=False).astype(bool)
            kept &= passing[:, None] if side == 0 else passing[None, :]
    for dimension in branch.dimensions:
        if dimension.made:
            continue
        columns = [tables[side][dimension.column(side)].combine_chunks() for side in (0, 1)]
        bound = bind(dimension, columns[0].type, columns[1].type)
        keys = [bound.keys(side, columns[side]) for side in (0, 1)]
        interval, other = bound.intervals(probe_side, keys[probe_side]), keys[1 - probe_side]
        inside = (interval.low[:, None] <= other.values) & (other.values <= interval.high[:, None])
        met = (inside != interval.negated) & other.mask()
        kept &= met if probe_side == 0 else met.T
        if bound.settles:
            for expression in dimension.expressions:
                kept &= is_true(expression)
    if branch.residual is not None:
        kept &= is_true(branch.residual)
    for expression in branch.excluded:
        kept &= ~is_true(expression)
    return kept
