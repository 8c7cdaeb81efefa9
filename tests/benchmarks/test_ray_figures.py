"""The figures of `benchmarks ray`: which batch a result belongs to, and which bytes crossed between processes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.q1_run import Read, Readings, launched, send_all
from benchmarks.ray_processes import Crossed, crossed
from operators import RunningJoin
from topology import LocalRuntime


def test_a_result_belongs_to_the_batch_of_its_later_reading() -> None:
    def pairs(*of: tuple[int, int]) -> pa.RecordBatch:
        return pa.record_batch({"R.id": [left for left, _ in of], "S.id": [right for _, right in of]})

    read = Read([pairs((12, 3), (10, 10)), pairs((13, 4), (14, 15)), pairs((30, 1))], [1.0, 2.0, 3.0])

    last = read.last_read(first=10, end=20, batch=5)

    # 12 and 13 are later readings of R, in its first batch; 10 of S is later than 10 of R; 30 is not asked for
    assert last.tolist() == [[2.0, 0.0], [1.0, 2.0]]


def test_readings_are_numbered_on_from_block_to_block() -> None:
    data = Readings()
    end = Readings.BLOCK + 1_000

    ids = np.concatenate([left.column("id").to_numpy() for left, _ in data.batches(end - 2_000, end, 500)])

    assert ids.tolist() == list(range(end - 2_000, end))


def test_only_bytes_from_producers_in_other_processes_have_crossed() -> None:
    with launched(100_000, LocalRuntime()) as running:
        send_all(running, Readings(), 0, 30_000, 1_000)
        running.finish()
        for _ in running.results():
            pass
        taken = {task.component: task.bytes_in for task in running.metrics().tasks}
        names = [f"{task.component}[{task.task}]" for task in running.metrics().tasks]

        def over(*apart: str) -> Crossed:
            together = tuple(name for name in names if name not in apart)
            return crossed(running, {"one": together, **{name: (name,) for name in apart}})

        sent = taken["R"] + taken["S"] + taken["results"] + taken["late"]
        assert over() == Crossed(0, 0, sent)
        assert over("mutable[0]") == Crossed(taken["mutable"], taken["mutable"] + _from_mutable(running), sent)
        assert over("gate[0]").probes == 0
        assert over("gate[0]").tasks > taken["gate"]


def _from_mutable(running: RunningJoin) -> int:
    """What the collector took from the mutable element at most, and the permutation element, which it alone feeds."""
    metrics = running.metrics()
    (mutable,), (collector,) = metrics.of("mutable"), metrics.of("collector")
    (permutation,) = metrics.of("permutation")
    return min(mutable.bytes_out, collector.bytes_in) + permutation.bytes_in
