"""The stock trace in order of arrival: every row is joined, late or rejected, and each is what the definition says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators import StreamJoin, TimeWindow
from tests.operators.intake.out_of_order import in_order, reported
from tests.realdata import stocks

pytestmark = pytest.mark.realdata

BOUND = 800


def late_offsets(times: np.ndarray, bound: int) -> list[int]:
    """Row by row: earlier than the greatest time before it, less the bound."""
    late = []
    greatest = None
    for offset, time in enumerate(times.tolist()):
        if greatest is not None and time < greatest - bound:
            late.append(offset)
        greatest = time if greatest is None else max(greatest, time)
    return late


@pytest.mark.parametrize("rejected", [0, 25])
def test_every_row_of_the_trace_is_accounted_for(rejected: int) -> None:
    tables = {"orders": stocks("orders"), "quotes": stocks("quotes")}
    untimed = set(range(100, 100 + rejected))
    times = tables["orders"]["ts"].to_numpy()
    mask = np.array([row in untimed for row in range(len(times))])
    orders = tables["orders"].set_column(1, "ts", pa.array(times, mask=mask))
    given = {"orders": {"orders": orders}, "quotes": {"quotes": tables["quotes"]}}
    join = StreamJoin(
        "orders",
        "quotes",
        "orders.key = quotes.key",
        TimeWindow(5),
        select=["orders.id", "quotes.id"],
        event_time="ts",
        out_of_order=BOUND,
    )
    results, late = join.collect_with_late({stream: table[stream] for stream, table in given.items()})
    found = reported(late)
    for stream, table in given.items():
        column = table[stream]["ts"]
        timed = np.flatnonzero(column.is_valid().to_numpy())
        kept_times = column.drop_null().to_numpy()
        expected = {int(timed[offset]): "out of order" for offset in late_offsets(kept_times, BOUND)}
        expected |= dict.fromkeys(untimed, "no event time") if stream == "orders" else {}
        rows = found[stream, stream]
        assert {offset: reason for offset, _, reason in rows} == expected
        assert [offset for offset, _, _ in rows] == sorted(expected)
        assert [time for _, time, _ in rows] == [column[offset].as_py() for offset, _, _ in rows]
        assert len(expected) > 100  # the bound is too small for some, and not for most
        assert len(expected) < table[stream].num_rows // 2
    kept = in_order(given, BOUND)
    joined = sum(each.num_rows for tables in kept.values() for each in tables.values())
    total = sum(each.num_rows for tables in given.values() for each in tables.values())
    reasons = Counter(late["reason"].to_pylist())
    assert joined + reasons["out of order"] + reasons["no event time"] == total
    assert reasons["no event time"] == rejected
    # the rows that take part, given in order to a join that knows no bound, have the same results in the same order
    in_time = StreamJoin(
        "orders", "quotes", "orders.key = quotes.key", TimeWindow(5), select=["orders.id", "quotes.id"], event_time="ts"
    )
    assert results.combine_chunks().equals(in_time.collect(kept).combine_chunks())
    assert results.num_rows > 0
    shown = set(pc.unique(results["orders.id"]).to_pylist())
    assert not shown & {offset for offset, _, _ in found["orders", "orders"]}
