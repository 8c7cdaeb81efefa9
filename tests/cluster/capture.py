"""Records every packet on a network of the tests: `python capture.py FILE`, in the namespaces of its switch.

Reads a raw packet socket, so that no program has to be installed. Whatever crosses between two machines passes the
switch. Prints a line when it begins, and the number of packets that it missed when it ends, at SIGTERM.
"""

from __future__ import annotations

import signal
import socket
import struct
import sys

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
SOL_PACKET = 263
PACKET_STATISTICS = 6
BUFFER_BYTES = 256 * 1024 * 1024
LONGEST_PACKET = 128 * 1024
"""The kernel hands over packets that the network card would cut later."""


def record(path: str) -> None:
    """Write all packets to a file, one after the other, until SIGTERM."""
    listening = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    try:
        listening.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    except PermissionError:  # root of a user namespace only: as large as the system allows
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    running = True

    def stop(*_: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    listening.settimeout(0.2)
    with open(path, "wb", buffering=0) as file:
        print("capturing", flush=True)
        while True:
            try:
                file.write(listening.recv(LONGEST_PACKET))
            except TimeoutError:  # quiet: all that was sent before SIGTERM has been read
                if not running:
                    break
    _, missed = struct.unpack("II", listening.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    print(f"missed {missed}", flush=True)


if __name__ == "__main__":
    record(sys.argv[1])
