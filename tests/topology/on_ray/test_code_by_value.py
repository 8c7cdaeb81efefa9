"""A script with conditions and bolts of its own runs on Ray as it runs embedded."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import pytest

import topology
from topology import MissingPackageError, UnpicklableError
from topology.on_ray.by_value import dumps, loads

PROJECT = Path(topology.__file__).parent.parent

HELPERS = """
    import pyarrow.compute as pc
    import interlace as il

    WIDTH = 2

    @il.function
    def close(left, right):
        return pc.less_equal(pc.abs(pc.subtract(left, right)), WIDTH)
    """

SCRIPT = """
    import os
    import sys

    import pyarrow as pa
    import pyarrow.compute as pc

    import helpers
    import interlace as il

    ROWS = pa.table({"x": list(range(8)), "y": [3, 1, 4, 1, 5, 9, 2, 6]})

    @il.function
    def larger(left, right):
        return pc.greater(left, right)

    def joined(runtime):
        R, S = il.stream("R"), il.stream("S")
        condition = helpers.close(R.x, S.x) & larger(R.y, S.y)
        join = il.StreamJoin("R", "S", condition, il.CountWindow(100), select=["R.x", "S.x"])
        with join.launch(runtime) as running:
            for stream in ("R", "S"):
                running.send(stream, ROWS)
            running.finish()
            return [tuple(row.values()) for rows in running.results() for row in rows.to_pylist()]

    @il.bolt
    class Seen:
        def __init__(self, least):
            self.least = least

        def execute(self, rows):
            return rows.filter(pc.greater_equal(rows["x"], self.least))

    class Doubling(il.Bolt):
        def build(self, context):
            return DoublingTask()

    class DoublingTask(il.Task):
        def on_batch(self, batch, origin):
            doubled = [value * helpers.WIDTH for value in batch.rows["x"].to_pylist()]
            where = [os.getpid() == PID] * len(doubled)
            yield il.Emit(il.Batch(il.DEFAULT_STREAM, pa.record_batch({"x": doubled, "here": where})))

    PID = os.getpid()

    def doubled(runtime):
        builder = il.TopologyBuilder("doubling")
        builder.input("in")
        builder.bolt("double", Doubling()).global_grouping("in")
        builder.bolt("again", il.MapBatches(lambda rows: rows.slice(1))).global_grouping("double")
        builder.bolt("seen", Seen(helpers.WIDTH)).global_grouping("again")
        builder.bolt("last", il.bolt(lambda rows: rows)).global_grouping("seen")
        builder.sink().global_grouping("last")
        with runtime.launch(builder.build()) as running:
            running.send("in", ROWS)
            running.finish()
            return [row for rows in running.results() for row in rows.to_pylist()]

    if __name__ == "__main__":
        os.chdir("/")
        ray = il.RayRuntime(address=sys.argv[1], placement=il.Workers(2))
        expected = joined(il.LocalRuntime())
        assert expected, "no matches"
        found = joined(ray)
        assert found == expected, (found, expected)
        rows = doubled(ray)
        assert [row["x"] for row in rows] == [2, 4, 6, 8, 10, 12, 14], rows
        assert not any(row["here"] for row in rows), rows
        print("equal")
    """


def test_a_script_and_a_module_beside_it_need_not_be_on_the_nodes(ray_cluster: None, tmp_path: Path) -> None:
    """The workers of the tests' cluster have other paths than the script, which has left its folder, too."""
    import ray

    (tmp_path / "helpers.py").write_text(dedent(HELPERS))
    (tmp_path / "script.py").write_text(dedent(SCRIPT))
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    environment["PYTHONPATH"] = str(PROJECT)
    script = subprocess.run(
        [sys.executable, "script.py", ray.get_runtime_context().gcs_address], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert script.returncode == 0, script.stderr
    assert script.stdout.strip().endswith("equal")


def test_a_package_that_a_machine_lacks_is_named() -> None:
    data = b"\x80\x04castrolabe.moon\nphase\n."  # the function phase of the module astrolabe.moon
    with pytest.raises(
        MissingPackageError, match=r"imports 'astrolabe', which this machine lacks: install 'astrolabe'"
    ):
        loads(data)


def test_what_cannot_be_sent_is_refused_with_a_remedy() -> None:
    with pytest.raises(UnpicklableError, match=r"open files, sockets and locks in build\(\)"):
        dumps(threading.Lock())
    assert loads(dumps(("order", 1))) == ("order", 1)
