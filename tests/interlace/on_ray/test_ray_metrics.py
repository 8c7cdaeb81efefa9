"""What Ray is handed is what the counters say: sums of counters stay sums when a topology begins anew."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import interlace as il
from interlace.on_ray import ray_metrics
from interlace.watching.exposition import FAMILIES
from interlace.watching.watch import Watch
from tests.topology.waiting import wait_for


class Recorded:
    """Stands in for a metric of Ray: sums what it is handed, by tags."""

    made: dict[str, Recorded] = {}  # noqa: RUF012

    def __init__(self, name: str, description: str = "", tag_keys: tuple[str, ...] = ()) -> None:
        self.made[name] = self
        self.tag_keys = set(tag_keys)
        self.values: dict[tuple[tuple[str, str], ...], float] = {}

    def inc(self, value: float, tags: dict[str, str]) -> None:
        assert set(tags) == self.tag_keys
        key = tuple(sorted(tags.items()))
        self.values[key] = self.values.get(key, 0.0) + value

    def set(self, value: float, tags: dict[str, str]) -> None:
        assert set(tags) == self.tag_keys
        self.values[tuple(sorted(tags.items()))] = value


def counted(name: str, component: str) -> float:
    return sum(value for tags, value in Recorded.made[name].values.items() if ("component", component) in tags)


def test_counters_are_sums_over_restarts_and_gauges_the_last_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_metrics, "Counter", Recorded)
    monkeypatch.setattr(ray_metrics, "Gauge", Recorded)
    consumer: Any = ray_metrics.RayMetrics()
    assert set(Recorded.made) == {name for family in FAMILIES for name in family.series}
    join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10))
    for sent in (3, 2):  # the second has counted less when it is first seen
        with join.launch(name="again") as running:
            watch = Watch(running, consumers=(consumer,))
            running.send("R", pa.table({"x": list(range(sent))}))
            wait_for(lambda sent=sent: running.metrics().of("R")[0].rows_in == sent)  # type: ignore[misc]
            watch.look()
            watch.look()
    assert counted("interlace_rows_in_total", "R") == 5
    assert list(Recorded.made["interlace_up"].values.values()) == [1.0]
    buckets = Recorded.made["interlace_latency_seconds_bucket"]
    assert "le" in buckets.tag_keys
    assert {dict(tags)["component"] for tags in buckets.values} == {"results", "late"}


def test_ray_takes_them(ray_cluster: None) -> None:
    join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10))
    with join.launch(name="seen by Ray") as running:
        ray_metrics.RayMetrics()(Watch(running).look())
