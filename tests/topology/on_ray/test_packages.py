"""Nodes without our packages get them; nodes that need an installation are named."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import topology
from topology import ClusterNode, MissingPackageError
from topology.graph.by_value import OUR_PACKAGES
from topology.on_ray.packages import REQUIRED, Installed, must_ship

PROJECT = Path(topology.__file__).parent.parent
OURS = Installed("1.2.0", "abc")
FIRST = ClusterNode("1111111111", "10.0.0.1", 2, 2, 0)
SECOND = ClusterNode("2222222222", "10.0.0.2", 2, 2, 0)


def test_equal_packages_are_not_sent() -> None:
    assert not must_ship(OURS, [(FIRST, OURS), (SECOND, OURS)])


@pytest.mark.parametrize("there", [Installed(None, ""), Installed("1.2.0", "other code")])
def test_packages_are_sent_if_one_node_lacks_them(there: Installed) -> None:
    assert must_ship(OURS, [(FIRST, OURS), (SECOND, there)])


def test_another_version_is_refused_with_its_nodes() -> None:
    with pytest.raises(MissingPackageError) as caught:
        must_ship(OURS, [(FIRST, Installed("1.1.0", "x")), (SECOND, OURS)])
    assert str(caught.value) == (
        "node 11111111 at 10.0.0.1 has interlace 1.1.0, but this program has 1.2.0: install the same version on every "
        "node (pip install interlace==1.2.0)"
    )


def test_a_node_that_lacks_libraries_is_refused() -> None:
    with pytest.raises(MissingPackageError) as caught:
        must_ship(OURS, [(FIRST, OURS), (SECOND, Installed(None, "", ("numba", "pyarrow")))])
    assert str(caught.value) == (
        "node 22222222 at 10.0.0.2 lacks numba, pyarrow: install interlace 1.2.0 on every node, which brings them"
    )


COMMAND_LINE = ("click", "packaging", "PyYAML", "rich", "starlette", "uvicorn")
"""What only the command line and the live page import, and no worker."""


def test_the_required_libraries_are_those_that_an_installation_brings() -> None:
    settings = configparser.ConfigParser()
    settings.read(PROJECT / "setup.cfg")
    lines = settings["options"]["install_requires"].split("\n")
    named = {re.split(r"[\[>=<~]", line)[0].strip() for line in lines} - {""}
    imported = {"grpcio": "grpc"}
    assert set(REQUIRED) == {imported.get(name, name) for name in named - {"ray", "pyspark", *COMMAND_LINE}}


PROGRAM = """
    import os
    import sys

    import pyarrow as pa
    import ray
    from ray.cluster_utils import Cluster

    import indexes, interlace, operators, spark_bridge, topology
    from topology.on_ray.nodes import cluster_nodes
    from topology.on_ray.packages import runtime_env_for

    # From here on nothing leads new processes to the packages that this program runs.
    sys.path = [path for path in sys.path if path != os.environ["PYTHONPATH"]]
    del os.environ["PYTHONPATH"]
    os.chdir("/")

    def marked(rows):
        from topology.on_ray.mark import MARK

        node = ray.get_runtime_context().get_node_id()
        return pa.record_batch({"mark": [MARK] * rows.num_rows, "node": [node] * rows.num_rows})

    builder = interlace.TopologyBuilder("marking")
    builder.input("in")
    builder.bolt("mark", interlace.MapBatches(marked), parallelism=2).all_grouping("in").resources(cpus=0.6)
    builder.sink().global_grouping("mark")
    marking = builder.build()

    quiet = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **quiet})
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        assert runtime_env_for(cluster_nodes()) == {}, "the only node is that of the program"
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
        cluster.wait_for_nodes()
        assert list(runtime_env_for(cluster_nodes())) == ["py_modules"]
        with interlace.RayRuntime().launch(marking) as running:
            running.send("in", pa.table({"n": [1]}))
            running.finish()
            rows = [row for rows in running.results() for row in rows.to_pylist()]
        assert [row["mark"] for row in rows] == ["sent", "sent"], rows
        assert len({row["node"] for row in rows}) == 2, rows
        print("sent")
    finally:
        ray.shutdown()
        cluster.shutdown()
    """


@pytest.mark.thorough  # starts a cluster of its own
def test_a_node_without_our_packages_gets_those_of_the_program(tmp_path: Path) -> None:
    code = tmp_path / "code"
    for package in OUR_PACKAGES:
        shutil.copytree(PROJECT / package, code / package, ignore=shutil.ignore_patterns("__pycache__"))
    (code / "topology/on_ray/mark.py").write_text('MARK = "sent"\n')
    (tmp_path / "program.py").write_text(dedent(PROGRAM))
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | {
        "PYTHONPATH": str(code)
    }
    program = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, timeout=600,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert program.returncode == 0, program.stderr
    assert program.stdout.strip().endswith("sent")
