"""Workers import what their tasks need: neither pandas nor any library for other purposes than running a join."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from operators import CountWindow, IndexJoin, PanJoin, SPOJoin, StreamJoin
from topology import MapBatches, Topology, TopologyBuilder
from topology.on_ray.by_value import dumps

REPOSITORY = Path(__file__).parents[3]
pytest.importorskip("pandas")


def in_a_new_process(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, text=True).strip()


HIDE = """
import sys
import numpy as np
import pyarrow as pa
from topology.process.without_pandas import hide_pandas

hide_pandas()
pa.array([1]), pa.array(np.arange(3)).to_numpy(), pa.scalar(1)
print("pandas" in sys.modules)
"""


def test_arrow_does_not_import_pandas_when_it_is_hidden() -> None:
    assert in_a_new_process(HIDE) == "False"


def test_arrow_knows_pandas_as_soon_as_it_is_imported() -> None:
    program = "import pandas; print(pa.array(pandas.Series([1.5, float('nan')])).null_count); "
    program += "print(pa.table({'a': [1]}).to_pandas().shape, pa.scalar(1, pa.timestamp('ns')).as_py().nanosecond)"
    assert in_a_new_process(HIDE + program).splitlines() == ["False", "1", "(1, 1) 1"]


def test_pandas_stays_where_it_was_imported_before() -> None:
    program = "import pandas" + HIDE + "print(pa.array(pandas.Series([1.5, float('nan')])).null_count)"
    assert in_a_new_process(program).splitlines() == ["True", "1"]


LOAD = """
import sys
from pathlib import Path
from topology.on_ray.by_value import loads
from topology.process.without_pandas import hide_pandas

hide_pandas()
topology = loads(Path(sys.argv[1]).read_bytes())
"""
BUILD = """
from topology import TaskContext

for node in topology.nodes:
    node.component.build(TaskContext(node.name, 0, node.parallelism, topology.origins(node.name)))
"""
RUN = """
import pyarrow as pa
from topology import LocalRuntime

running = LocalRuntime().launch(topology)
for stream in "RS":
    running.send(stream, pa.record_batch({"a": [3, 1, 2] * 50, "b": [1, 2, 3] * 50}))
running.finish()
assert sum(batch.num_rows for batch in running.results())
"""
SHOW = """
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
JOINS = {
    "two inequalities": StreamJoin("R", "S", "R.a < S.a AND R.b > S.b", CountWindow(100), using=SPOJoin()),
    "band": StreamJoin("R", "S", "R.a BETWEEN S.a - 1 AND S.a + 1", CountWindow(100), using=IndexJoin()),
    "equality": StreamJoin("R", "S", "R.a = S.a", CountWindow(100), kind="left"),
    "PanJoin": StreamJoin("R", "S", "R.a < S.a", CountWindow(100), using=PanJoin()),
}


def load_and(program: str, topology: Topology, file: Path) -> list[set[str]]:
    """The top-level modules that a process has imported, each time that the program shows them."""
    file.write_bytes(dumps(topology))
    return [set(line.split()) for line in in_a_new_process(LOAD + program, str(file)).splitlines()]


@pytest.mark.parametrize("name", JOINS)
def test_a_worker_imports_neither_pandas_nor_sql_nor_spark_and_no_compiler_before_rows(
    name: str, tmp_path: Path
) -> None:
    built, run = load_and(BUILD + SHOW + RUN + SHOW, JOINS[name].topology(), tmp_path / "topology")
    assert built.isdisjoint({"numba", "llvmlite"})
    assert run.isdisjoint({"pandas", "sqlglot", "duckdb", "polars", "pyspark", "scipy", "matplotlib"})


def test_code_of_the_user_finds_arrow_as_it_knows_it(tmp_path: Path) -> None:
    """Here it is a function that travels by value; Arrow gives it nanoseconds as objects of pandas."""
    builder = TopologyBuilder()
    builder.input("rows")
    builder.bolt("user", MapBatches(lambda batch: batch)).global_grouping("rows")
    builder.sink("results").global_grouping("user")
    (loaded,) = load_and(SHOW, builder.build(), tmp_path / "topology")
    assert "pandas" in loaded
