"""Spouts over iterables, files and sources of one's own; and what they send to an input, once."""

from __future__ import annotations

import doctest
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import topology.spouts.iterables
from interlace.testing import run
from topology import (
    LocalRuntime,
    OutOfOrderError,
    Source,
    Spout,
    TaskError,
    Topology,
    TopologyBuilder,
    TopologyError,
    Tumbling,
    bolt,
    from_files,
    from_iterable,
    from_source,
    pump,
)


@dataclass(frozen=True)
class Numbers(Source):
    """Partitions with numbers, in batches of two."""

    size: int = 5

    def partitions(self) -> Sequence[str]:
        return ["low", "high", "none"]

    def read(self, partition: str, offset: int) -> Iterator[Any]:
        numbers = {"low": range(self.size), "high": range(100, 100 + self.size), "none": range(0)}[partition]
        for first in range(offset, len(numbers), 2):
            yield {"x": list(numbers[first : first + 2])}


def fed_by(spout: Spout, tasks: int = 1) -> Topology:
    builder = TopologyBuilder()
    builder.spout("numbers", spout, tasks)
    builder.sink().global_grouping("numbers")
    return builder.build()


@pytest.mark.parametrize("tasks", [1, 2, 4])
def test_the_tasks_of_a_spout_share_the_partitions(tasks: int) -> None:
    emitted = run(fed_by(from_source(Numbers()), tasks), {})["results"]["x"].to_pylist()
    assert sorted(emitted) == [*range(5), *range(100, 105)]


@pytest.mark.parametrize(
    "rows",
    [
        [{"x": 1}, {"x": 2}],
        [{"x": [1, 2]}],
        (pa.table({"x": [1]}), pa.table({"x": [2]})),
        lambda: iter([{"x": 1}, {"x": 2}]),
        lambda: [pa.record_batch({"x": [1, 2]})],
    ],
)
def test_rows_of_an_iterable(rows: Any) -> None:
    assert run(fed_by(from_iterable(rows)), {})["results"].to_pydict() == {"x": [1, 2]}
    source = from_iterable(rows).source
    assert [row for part in source.read("rows", 1) for row in part.to_pylist()] == [{"x": 2}]


def test_what_is_read_once_is_refused() -> None:
    with pytest.raises(TopologyError, match="give a list, or the function that makes it"):
        from_iterable(x for x in [{"x": 1}])


def test_rows_of_files(tmp_path: Path) -> None:
    for number in range(3):
        pa.parquet.write_table(pa.table({"x": [number, 10 + number]}), tmp_path / f"{number}.parquet")
    (tmp_path / "more.csv").write_text("x\n20\n")
    spout = from_files([tmp_path / "*.parquet", tmp_path / "more.csv"])
    assert sorted(run(fed_by(spout, 2), {})["results"]["x"].to_pylist()) == [0, 1, 2, 10, 11, 12, 20]
    with pytest.raises(TaskError, match=r"missing.csv' does not exist here"):
        run(fed_by(from_files(tmp_path / "missing.csv")), {})
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(TaskError, match=r"does not end in one of arrow, feather"):
        run(fed_by(from_files(tmp_path / "a.txt")), {})


def test_a_spout_with_event_time_emits_watermarks() -> None:
    def timed() -> Iterator[Any]:
        yield {"t": [1, 5]}
        yield {"t": [12]}
        while True:
            yield {"t": [13]}

    builder = TopologyBuilder()
    builder.spout("ticks", from_iterable(timed, "t"))
    windows = bolt(window=Tumbling("t", 10))(lambda window, rows: {"end": window.end, "n": rows.num_rows})
    builder.bolt("windows", windows).global_grouping("ticks")
    builder.sink().global_grouping("windows")
    with LocalRuntime().launch(builder.build()) as running:  # it never ends, but the first window is complete
        assert next(running.results(timeout=60)).to_pylist() == [{"end": 10, "n": 2}]


def test_times_that_go_backwards_are_refused() -> None:
    with pytest.raises(TaskError, match=OutOfOrderError.__name__):
        run(fed_by(from_iterable([{"t": [5, 3]}], "t")), {})


def with_input() -> Topology:
    builder = TopologyBuilder("pumped")
    builder.input("in")
    builder.sink().global_grouping("in")
    return builder.build()


def test_a_source_goes_on_behind_what_an_input_has(tmp_path: Path) -> None:
    class Failing(Numbers):
        def read(self, partition: str, offset: int) -> Iterator[Any]:
            for number, rows in enumerate(super().read(partition, offset)):
                if number == 1:
                    raise OSError("the connection is lost")
                yield rows

    with LocalRuntime(state=tmp_path).launch(with_input()) as running:
        with pytest.raises(OSError, match="lost"):
            pump(Failing(), running, "in")
        assert running.next_offset("in", "low") == 2
    with LocalRuntime(state=tmp_path).launch(with_input()) as running:
        assert pump(Numbers(), running, "in") == 6
        assert pump(Numbers(), running, "in") == 0
        running.finish()
        found = sorted(x for rows in running.results(timeout=60) for x in rows["x"].to_pylist())
    assert found == [*range(5), *range(100, 105)]


def test_the_examples_of_the_docstrings_run() -> None:
    tried = doctest.testmod(topology.spouts.iterables)
    assert tried.attempted
    assert not tried.failed
