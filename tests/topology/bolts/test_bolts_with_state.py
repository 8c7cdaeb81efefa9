"""Decorated bolts in a topology that keeps its state: windows and keys go on after the process has gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from topology import Input, Key, LocalRuntime, Topology, TopologyBuilder, Tumbling, bolt


@bolt(window=Tumbling("t", 10), key="k")
def total(window: Any, rows: pa.RecordBatch) -> Any:
    """Count the rows of a window."""
    return {"k": window.key, "end": window.end, "n": rows.num_rows}


@bolt(key="k")
def windows(key: Key, rows: pa.RecordBatch) -> Any:
    """Count the windows of a key."""
    key.state["n"] = key.state.get("n", 0) + rows.num_rows
    return {"k": key.value, "windows": key.state["n"]}


def described() -> Topology:
    builder = TopologyBuilder("kept windows")
    builder.input("in", Input(event_time="t"))
    builder.bolt("total", total, parallelism=2).fields_grouping("in", "k")
    builder.bolt("windows", windows).fields_grouping("total", "k")
    builder.sink().global_grouping("windows")
    return builder.build()


def test_windows_fire_and_go_on_with_a_state(tmp_path: Path) -> None:
    with LocalRuntime(state=tmp_path).launch(described()) as running:
        running.send("in", {"k": ["a", "b", "a"], "t": [1, 2, 12]}, source="s")
        first = [row for _ in range(1) for row in next(running.results(timeout=60)).to_pylist()]
        assert {"k": "a", "windows": 1} in first or {"k": "b", "windows": 1} in first
    with LocalRuntime(state=tmp_path).launch(described()) as running:
        running.send("in", {"k": ["b"], "t": [25]}, source="s")
        running.finish()
        found = [row for rows in running.results(timeout=60) for row in rows.to_pylist()]
    assert {"k": "a", "windows": 2} in found
    assert {"k": "b", "windows": 2} in found
