"""The two plans of SPO-Join's mutable part, fused and decomposed, on one machine: which is cheaper?

The same join, with a window that is answered by the mutable part alone, is run with either plan.
"""

from __future__ import annotations

from typing import Any

from benchmarks.data import datacentre_readings
from benchmarks.measure import Measured, run_join
from operators import CountWindow, SPOJoin, StreamJoin

WINDOW = 200_000
NOISE = 0.05


def run(quick: bool) -> dict[str, Any]:
    """Measure both plans at several batch sizes."""
    rows = []
    print(f"{'batch':>8}{'fused':>14}{'decomposed':>14}{'ratio':>8}   (tuples/s)")
    for batch in (1_000, 10_000, 100_000):
        measured = WINDOW // 4 if quick else WINDOW
        total = WINDOW + max(measured, 2 * batch)
        tables = (datacentre_readings(total, NOISE, 1), datacentre_readings(total, NOISE, 2))
        fused = _measure("fused", tables, batch)
        decomposed = _measure("decomposed", tables, batch)
        assert fused.results.equals(decomposed.results), "both plans must give the same results"
        ratio = fused.rate / decomposed.rate
        print(f"{batch:>8,}{fused.rate:>14,.0f}{decomposed.rate:>14,.0f}{ratio:>8.1f}")
        rows.append(
            {"case": f"batch={batch}", "ours": fused.rate, "peers": {"decomposed": decomposed.rate}, "ratio": ratio}
        )
    return {"name": "mutable-plans", "rows": rows}


def _measure(plan: Any, tables: Any, batch: int) -> Measured:
    engine = SPOJoin(mutable=plan, merge_interval=WINDOW)
    join = StreamJoin(
        "R",
        "S",
        "R.power < S.power AND R.cool > S.cool",
        CountWindow(WINDOW, WINDOW // 10),
        select=["R.id", "S.id"],
        event_time="block",
        using=engine,
        step_rows=batch,
    )
    return run_join(join, tables, batch, WINDOW)
