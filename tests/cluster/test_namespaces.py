"""The machines that other tests rely on: what crosses between them is seen, and nothing outlives them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cluster.conftest import MakeNetwork
from tests.cluster.namespaces import environment, process_namespace, processes_in
from tests.cluster.waiting import Recording, wait_until_gone

LISTENER = """
import socket
server = socket.create_server(("", 7000))
print("listening", flush=True)
print(server.accept()[0].recv(1000), flush=True)
"""
SENDER = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7000), timeout=5).sendall(b"a text that anyone on the network can read")
except OSError as error:
    print("not sent", error)
"""
HOLDER = """
import sys, time
from tests.cluster.namespaces import Network
network = Network(1)
network.machines[0].run("sh", "-c", "sleep 1000 > /dev/null 2> /dev/null &")
print("ready", network.machines[0].first, flush=True)
time.sleep(1000)
"""


def test_a_text_that_crosses_is_seen_and_none_crosses_to_a_machine_that_is_cut_off(
    machines: MakeNetwork, tmp_path: Path
) -> None:
    network = machines(2)
    one, other = network.machines
    recording = Recording(network, tmp_path)
    listening = one.start("python", "-c", LISTENER, output=tmp_path / "listener")
    listening.wait_for("listening")
    assert other.start("python", "-c", SENDER, one.address, output=tmp_path / "sender").wait() == 0
    assert listening.wait() == 0
    assert "that anyone on the network can read" in listening.output
    one.cut_off()
    sending = other.start("python", "-c", SENDER, one.address, output=tmp_path / "sender")
    sending.wait()
    assert "not sent" in sending.output
    assert b"a text that anyone on the network can read" in recording.end()


def test_machines_end_with_the_process_that_made_them_also_after_sigkill(machines: MakeNetwork) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], env=environment(), stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    first = int(holder.stdout.readline().split()[1])
    home = process_namespace(first)
    assert "sleep 1000" in processes_in(home).values()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    wait_until_gone(lambda: processes_in(home))
