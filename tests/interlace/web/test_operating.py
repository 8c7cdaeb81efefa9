"""docs/operating.md, step by step, as a newcomer follows it: `ray start`, the command line, and a browser."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
import ray

from tests.interlace.command_line.invoking import invoke
from tests.interlace.web.browser import chromium, started
from tests.topology.waiting import LONG, wait_for
from topology import UnknownTopologyError, stop_topology

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium: run make system-deps")

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operating.md").read_text()
BIN = Path(sys.executable).parent
PATIENCE = 180_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def block(containing: str) -> str:
    """The shell block of the page that contains a text."""
    return next(found for found in re.findall(r"```sh\n(.*?)```", PAGE, re.S) if containing in found)


class Shell:
    """Runs commands of the page in a folder, on some cluster; everything that it starts ends with it."""

    def __init__(self, folder: Path, address: str, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RAY_ADDRESS": address,
            **(settings or {}),
        }

    def start(self, command: str) -> tuple[subprocess.Popen[bytes], Path]:
        """A process, and the file that gets what it says."""
        options = {"cwd": self.folder, "env": self._environment, "start_new_session": True}
        said = self.folder / f"{len(self._started)}.log"
        with said.open("wb") as out:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                ["bash", "-c", command],
                stdout=out,
                stderr=out,
                **options,  # type: ignore[call-overload]
            )
        self._started.append(process)
        return process, said

    def run(self, command: str) -> str:
        options = {"cwd": self.folder, "env": self._environment, "capture_output": True, "timeout": LONG}
        done = subprocess.run(["bash", "-c", command], check=False, **options)  # type: ignore[call-overload]
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        return str(done.stdout.decode())

    def interlace(self, command: str) -> str:
        return self.run(command)

    def end(self, process: subprocess.Popen[bytes], *signals: int) -> None:
        """End one of the processes."""
        for number in signals:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(30)

    def close(self) -> None:
        """End all that was started."""
        for process in reversed(self._started):
            self.end(process, signal.SIGTERM, signal.SIGKILL)


class SharedShell(Shell):
    """Runs short commands of the program in this process, which is on the cluster already: that saves their imports."""

    def interlace(self, command: str) -> str:
        name, *arguments = shlex.split(command, comments=True)
        assert name == "interlace"
        done = invoke(*arguments)
        assert done.exit_code == 0, f"{command}: {done.stderr}"
        return done.stdout


@pytest.mark.thorough
def test_a_newcomer_deploys_looks_scales_kills_a_worker_and_drains(ray_cluster: None, tmp_path: Path) -> None:
    shell = SharedShell(tmp_path, str(ray.get_runtime_context().gcs_address))
    try:
        follow(shell)
    finally:
        shell.close()
        with suppress(UnknownTopologyError):
            stop_topology("offers")


@pytest.mark.slow
def test_the_page_on_a_cluster_of_its_own_that_wants_a_token(tmp_path: Path) -> None:
    port, folder = free_port(), tempfile.mkdtemp(prefix="ray-")  # Ray's sockets need a short path
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    shell = Shell(tmp_path, f"{ray.util.get_node_ip_address()}:{port}", settings)
    assert block("ray start --head").startswith("ray start --head\n")
    try:
        cluster, said = shell.start(
            f"ray start --head --block --port {port} --num-cpus 4 "
            f"--include-dashboard false --temp-dir {folder} --object-store-memory 80000000"
        )
        wait_for(lambda: cluster.poll() is not None or "Ray runtime started" in said.read_text())
        assert cluster.poll() is None
        follow(shell)
    finally:
        shell.close()
        shutil.rmtree(folder, ignore_errors=True)


def page_of(shell: Shell) -> tuple[subprocess.Popen[bytes], str]:
    """The process that serves the live page, and its address."""
    process, said = shell.start("interlace ui --port 0")
    wait_for(lambda: process.poll() is not None or "the page is at" in said.read_text())
    url = re.search(r"http://\S+", said.read_text())
    assert url is not None, said.read_text()
    return process, url[0]


def rows_out(shell: Shell) -> int:
    """How many results have come."""
    tasks = json.loads(shell.interlace("interlace metrics offers --json"))["tasks"]
    return sum(int(task["rows_in"]) for task in tasks if task["component"] == "results")


def follow(shell: Shell) -> None:
    """Do what the page says, on a cluster that runs."""
    from playwright.sync_api import expect

    _, *deploy = block("ray start --head").splitlines(keepends=True)
    assert "'offers' runs" in shell.run("".join(deploy))
    feed = block("feed.py")
    shell.run(feed.rpartition("python feed.py")[0])
    shell.start("python feed.py")
    following, _ = shell.start("interlace logs -f offers")
    assert "offers: running, detached" in shell.interlace("interlace status offers")
    server, url = page_of(shell)
    with started() as browser:
        tab = browser.new_context().new_page()
        tab.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        tab.goto(url)
        expect(tab.locator("#bottleneck")).to_contain_text("'processing-thread' is the bottleneck")
        expect(tab.locator(".box.culprit")).to_have_attribute("data-component", "processing-thread")
        shell.interlace(block("interlace rebalance"))
        expect(tab.locator(".graph [data-component=processing-thread]")).to_contain_text("processing-thread ×2")
        expect(tab.locator("#state")).to_have_text("running")
        shown = shell.interlace("interlace status offers")
        os.kill(int(re.findall(r"^\S+\s+\S+\s+(\d+)\s.*processing-thread", shown, re.M)[0]), signal.SIGKILL)
        expect(tab.locator("#state")).to_have_text("recovering")
        expect(tab.locator("#state")).to_have_text("running")
        tab.get_by_role("tab", name="Events and log").click()
        expect(tab.locator("#view")).to_contain_text("died")
        assert "recovering in" in shell.interlace("interlace errors offers")
        saved = shell.interlace("interlace savepoint offers").strip()
        assert Path(saved.removeprefix("file://")).exists()

        shell.end(server, signal.SIGKILL)  # the page is a client: its death harms nothing
        before = rows_out(shell)
        wait_for(lambda: rows_out(shell) > before)
        assert "offers: running, detached" in shell.interlace("interlace status offers")
        server, url = page_of(shell)
        tab.goto(url)
        expect(tab.locator("#state")).to_have_text("running")

        assert "has been stopped" in shell.interlace(block("--wait 60"))
        expect(tab.locator("#summary")).to_contain_text("No topology runs here")
        assert following.wait(LONG) == 0
        shell.end(server, signal.SIGTERM)
        assert server.returncode == 0
