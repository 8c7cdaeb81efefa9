"""SPO-Join in many processes does not come to a standstill, however slow its merging is.

The collector waits for the mutable part and for the PO-Join elements. The mutable part feeds these too, by way of the
permutation elements. When a segment was as large as an edge's capacity and merging was slow, each waited for the other.
"""

import random
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators import CountWindow, SPOJoin, StreamJoin
from operators.engines.spo_join.mutable_element import MutableTask
from operators.engines.spo_join.permutation_element import PermutationTask
from operators.engines.spo_join.predicate_element import PredicateTask
from tests.topology.process.processes import processes
from tests.topology.waiting import LONG
from topology.graph.graph import TaskName

BATCHES, ROWS, SLIDE = 250, 20, 100
SEGMENT_BYTES = 50_000


def slow(monkeypatch: pytest.MonkeyPatch, task: type, method: str, most: float) -> None:
    """Let a method take up to `most` seconds longer."""
    rng = random.Random(5)
    called = getattr(task, method)

    def late(self: Any, *given: Any) -> Any:
        time.sleep(most * rng.random())
        return called(self, *given)

    monkeypatch.setattr(task, method, late)


@pytest.mark.parametrize("edge_bytes", [1, SEGMENT_BYTES])
@pytest.mark.parametrize(
    "engine", [SPOJoin(), SPOJoin(mutable="decomposed", logical_elements=2)], ids=["fused", "decomposed"]
)
def test_slow_merging_in_processes_of_its_own(
    engine: SPOJoin, edge_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = StreamJoin("R", "S", "R.a < S.a AND R.b > S.b", CountWindow(10 * SLIDE, SLIDE), using=engine)
    topology = join.topology()
    rng = np.random.default_rng(5)
    rows = {
        name: pa.record_batch({"a": rng.random(BATCHES * ROWS), "b": rng.random(BATCHES * ROWS)}) for name in ("R", "S")
    }
    expected = join.collect({name: pa.Table.from_batches([batch]) for name, batch in rows.items()}).num_rows
    slow(monkeypatch, PermutationTask, "on_batch", 0.05)
    for task in (MutableTask, PredicateTask):
        slow(monkeypatch, task, "on_step", 0.01)
    names = [(node.name, number) for node in topology.nodes for number in range(node.parallelism)]
    entry: list[TaskName] = [name for name in names if name[0] in ("R", "S", "gate", "router", "late")]
    end: list[TaskName] = [("collector", 0), ("results", 0)]
    elements: list[list[TaskName]] = [[name] for name in names if name not in [*entry, *end]]
    with processes(topology, entry, *elements, end, edge_bytes=edge_bytes) as ((first, *_, last), _):

        def feed() -> None:
            for start in range(0, BATCHES * ROWS, ROWS):
                for name in ("R", "S"):
                    first.group.ingest.send(name, name, rows[name].slice(start, ROWS))
            for name in ("R", "S"):
                first.group.ingest.finish(name, None)

        feeding = threading.Thread(target=feed, daemon=True)
        feeding.start()
        results = last.group.results["results"].read()
        found = 0
        while (given := results.next(LONG)) is not None:
            found = given[0] + given[1].num_rows
            results.acknowledge(found - 1)
        assert results.finished, "no result came for a long time"
        assert found == expected
        feeding.join(LONG)
