"""Executors that have nothing of ours, and what is said of those that cannot work."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spark_bridge import deployment
from spark_bridge.deployment import has_our_code, require_fit
from spark_bridge.probe import Probe, code_digest
from spark_bridge.shipped_code import shipped_code
from topology import ConnectionLostError, Endpoint, MissingPackageError

ROOT = Path(__file__).parents[2]

WITHOUT_OUR_CODE = """
    import sys

    class NotFromTheCheckout:
        def find_spec(self, name, path=None, target=None):
            was_sent = any("on_executors" in entry for entry in sys.path)
            if name == "lazy_loader" or (name in ("topology", "spark_bridge") and not was_sent):
                raise ModuleNotFoundError(f"hidden: {name}", name=name)

    sys.meta_path.insert(0, NotFromTheCheckout())
    sys.path_importer_cache.clear()
"""


def told(**differing: str) -> dict[str, str]:
    return {"machine": "node-7", "python": "3.12.1", "pyarrow": "19.0.0", "code": "x", "unreachable": "", **differing}


def test_a_worker_tells_what_it_has_and_whether_it_reaches_the_endpoint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        here = json.loads(Probe("127.0.0.1", port)(0))
    assert has_our_code(here)
    assert here["unreachable"] == ""
    require_fit(here, "grpc://127.0.0.1:1")
    assert "refused" in json.loads(Probe("127.0.0.1", port)(0))["unreachable"]


def test_what_a_worker_lacks_is_named_with_its_machine() -> None:
    require_fit(told(), "grpc://topology:1")
    assert not has_our_code(told())
    with pytest.raises(MissingPackageError, match=r"on node-7 has no pyarrow in Python 3.12.1: install pyarrow 18"):
        require_fit(told(pyarrow=""), "grpc://topology:1")
    with pytest.raises(MissingPackageError, match=r"on node-7 has pyarrow 15.0.2"):
        require_fit(told(pyarrow="15.0.2"), "grpc://topology:1")
    with pytest.raises(
        ConnectionLostError, match=r"on node-7 cannot reach the topology at grpc://topology:1 \(timed out\)"
    ):
        require_fit(told(unreachable="timed out"), "grpc://topology:1")


def test_executors_are_asked_again_for_another_address_and_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(spark: object, location: str) -> list[dict[str, str]]:
        asked.append(location)
        return [told(code=code_digest())]

    monkeypatch.setattr(deployment, "_asked", answer)
    monkeypatch.setattr(deployment, "_asked_at", {})
    monkeypatch.setattr(deployment, "_application", lambda spark: "application")
    spark: Any = None
    here, there = (f"grpc://127.0.0.1:{port}" for port in (1, 2))
    others = [f"grpc://10.0.0.1:{port}" for port in (1, 2)]
    for location in ("", "", here, there, *others, *others):
        deployment.prepare_executors(spark, Endpoint(location, "token") if location else None)
    assert asked == ["", here, *others], "a loopback address is asked for once, a network's for each port"
    monkeypatch.setattr(deployment, "ASKED_AGAIN_SECONDS", 0.0)
    deployment.prepare_executors(spark)
    assert asked[-1] == ""


def test_the_code_that_is_sent_works_alone() -> None:
    """In a process with nothing but the archive, pyarrow and pyspark: what executors run can be imported."""
    archive = shipped_code()
    assert code_digest() in archive.name
    with zipfile.ZipFile(archive) as content:
        assert "topology/flight/client.py" in content.namelist()
    modules = ["stage_partition", "feed_writer", "feed_batch", "data_source", "results_reader", "results_spool"]
    imports = "; ".join(f"import spark_bridge.{module}" for module in modules)
    program = (
        textwrap.dedent(WITHOUT_OUR_CODE)
        + imports
        + textwrap.dedent("""
        from topology import Endpoint, FlightClient
        from spark_bridge import InterlaceDataSource
        from spark_bridge.probe import code_digest
        assert "on_executors" in FlightClient.__init__.__code__.co_filename
        print(code_digest(), InterlaceDataSource.name())
    """)
    )
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.stdout.split() == [code_digest(), "interlace"], ran.stderr


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize(
    "session", ["both", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("classic", "connect"))]
)
def test_a_session_whose_executors_have_nothing_of_ours_feeds_a_join(session: str, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(textwrap.dedent(WITHOUT_OUR_CODE))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark_bridge.bare_executors_program", session, str(hidden), str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    sessions = 2 if session == "both" else 1
    assert ran.stdout.count("streaming: 60 rows, equal") == sessions, ran.stdout + ran.stderr
    assert ran.stdout.count("by format: 60 rows") == sessions, ran.stdout + ran.stderr
    if session != "connect":
        assert "tokens in the event log: 0" in ran.stdout, ran.stdout + ran.stderr
        assert "bounded: 100 rows" in ran.stdout, ran.stdout + ran.stderr
