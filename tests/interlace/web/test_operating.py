"""docs/operating.md, step by step, as a newcomer follows it: `ray start`, the command line, and a browser."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import ray

from tests.interlace.web.browser import chromium, started
from tests.topology.waiting import LONG, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium: run make system-deps"),
]

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
    """Runs commands of the page in a folder, on a cluster of its own; everything that it starts ends with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.address = f"{ray.util.get_node_ip_address()}:{self.port}"
        self.short_folder = tempfile.mkdtemp(prefix="ray-")  # Ray's sockets need a short path
        self._started: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RAY_ADDRESS": self.address,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }

    def start(self, command: str) -> subprocess.Popen[bytes]:
        options = {"cwd": self.folder, "env": self._environment, "start_new_session": True}
        with (self.folder / f"{len(self._started)}.log").open("wb") as out:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                ["bash", "-c", command],
                stdout=out,
                stderr=out,
                **options,  # type: ignore[call-overload]
            )
        self._started.append(process)
        return process

    def attempt(self, command: str) -> subprocess.CompletedProcess[bytes]:
        options = {"cwd": self.folder, "env": self._environment, "capture_output": True, "timeout": LONG}
        return subprocess.run(["bash", "-c", command], check=False, **options)  # type: ignore[call-overload]

    def run(self, command: str) -> str:
        done = self.attempt(command)
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        return done.stdout.decode()

    def close(self) -> None:
        """End all that was started."""
        for process in reversed(self._started):
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(30)
        shutil.rmtree(self.short_folder, ignore_errors=True)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.close()


def test_a_newcomer_deploys_looks_scales_kills_a_worker_and_drains(shell: Shell) -> None:
    from playwright.sync_api import expect

    ray_start, *deploy = block("ray start --head").splitlines(keepends=True)
    assert ray_start == "ray start --head\n"
    cluster = shell.start(
        f"ray start --head --block --port {shell.port} --num-cpus 4 "
        f"--include-dashboard false --temp-dir {shell.short_folder} --object-store-memory 80000000"
    )
    said = shell.folder / "0.log"
    wait_for(lambda: cluster.poll() is not None or "Ray runtime started" in said.read_text())
    assert cluster.poll() is None
    assert "'offers' runs" in shell.run("".join(deploy))
    feed = block("feed.py")
    shell.run(feed.rpartition("python feed.py")[0])
    shell.start("python feed.py")
    assert "offers: running, detached" in shell.run("interlace status offers")
    shell.start("interlace ui --port 0")
    told = shell.folder / "2.log"
    wait_for(lambda: "the page is at" in told.read_text())
    url = re.search(r"http://\S+", told.read_text())
    assert url is not None
    with started() as browser:
        tab = browser.new_context().new_page()
        tab.goto(url[0])
        expect(tab.locator("#bottleneck")).to_contain_text("'processing-thread' is the bottleneck", timeout=PATIENCE)
        expect(tab.locator(".box.culprit")).to_have_attribute("data-component", "processing-thread", timeout=PATIENCE)
        shell.run(block("interlace rebalance"))
        box = tab.locator(".graph [data-component=processing-thread]")
        expect(box).to_contain_text("processing-thread ×2", timeout=PATIENCE)
        expect(tab.locator("#state")).to_have_text("running", timeout=PATIENCE)
        processes = re.findall(r"^\S+\s+\S+\s+(\d+)\s.*processing-thread", shell.run("interlace status offers"), re.M)
        os.kill(int(processes[0]), signal.SIGKILL)
        expect(tab.locator("#state")).to_have_text("recovering", timeout=PATIENCE)
        expect(tab.locator("#state")).to_have_text("running", timeout=PATIENCE)
        tab.get_by_role("tab", name="Events and log").click()
        expect(tab.locator("#view")).to_contain_text("died", timeout=PATIENCE)
        assert "recovering in" in shell.run("interlace errors offers")
        assert "has been stopped" in shell.run(block("--wait 60"))
        expect(tab.locator("#summary")).to_contain_text("No topology runs here", timeout=PATIENCE)
