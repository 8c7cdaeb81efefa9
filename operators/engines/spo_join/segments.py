"""Sorted runs and finished segments as messages between elements.

A run is one dimension of a segment: its keys in order and, for each, the row it belongs to. A segment is all its
dimensions together with the permutation array between two of them, which its labels name.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from indexes import Permutation, PermutationOffsetJoin, SortedRun
from operators.engines.shared.selectivity import Pair
from operators.engines.spo_join.streams import RUNS, SEGMENTS
from operators.protocol.columns import values_of
from operators.protocol.merge_order import Merge
from topology import Batch


def run_batch(order: Merge, dimension: int, run: SortedRun, pair: Pair) -> Batch:
    """Pack one dimension's run of the segment that `order` asks for; `pair`: the dimensions to permute."""
    rows = pa.record_batch({"key": pa.array(run.keys, from_pandas=False), "row": pa.array(run.order)})
    labels = (order.side, order.segment, order.first, order.end, dimension, *pair)
    return Batch(RUNS.name, rows, first=order.first, labels=labels)


def run_of(batch: Batch) -> tuple[Merge, int, SortedRun, Pair]:
    """Unpack a run: the order that asked for it, its dimension, the run, and the pair of dimensions to permute."""
    *order, dimension, along, across = batch.labels
    merge = Merge(*order)
    run = _run(batch.rows.column(0), batch.rows.column(1), merge.end - merge.first)
    return merge, dimension, run, (along, across)


def segment_batch(order: Merge, runs: Sequence[SortedRun], pair: Pair, permutation: Permutation | None) -> Batch:
    """Pack a whole segment with the permutation of a pair; runs may differ in length where keys are null."""
    columns = [_one_list(array) for run in runs for array in (run.keys, run.order)]
    names = [f"{kind}{index}" for index in range(len(runs)) for kind in ("key", "row")]
    if permutation is not None:
        columns.append(_one_list(permutation.partner))
        names.append("permutation")
    rows = pa.record_batch(columns, names=names)
    labels = (order.side, order.segment, order.first, order.end, *pair)
    return Batch(SEGMENTS.name, rows, first=order.first, labels=labels)


def runs_of(batch: Batch) -> tuple[Merge, list[SortedRun]]:
    """Unpack the runs of a segment, one per dimension."""
    order = Merge(*batch.labels[:4])
    columns = [column.values for column in batch.rows.columns]
    return order, [
        _run(columns[index], columns[index + 1], order.end - order.first) for index in range(0, len(columns) - 1, 2)
    ]


def segment_of(batch: Batch) -> tuple[Merge, PermutationOffsetJoin]:
    """Unpack a segment."""
    order, runs = runs_of(batch)
    segment = PermutationOffsetJoin(order.first, runs)
    if batch.rows.num_columns % 2:
        along, across = batch.labels[4:]
        segment.use_permutation(along, across, values_of(batch.rows.columns[-1].values))
    return order, segment


def _one_list(array: object) -> pa.Array:
    values = pa.array(array, from_pandas=False)
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _run(keys: pa.Array, rows: pa.Array, count: int) -> SortedRun:
    return SortedRun(values_of(keys), values_of(rows), count)
