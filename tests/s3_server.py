"""An S3 server for tests, in a process of its own that ends with the tests, however they end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pyarrow.fs as pafs

_PROGRAM = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
"""The server ends when nobody holds the other end of its standard input any more."""


@contextmanager
def s3_server() -> Iterator[str]:
    """Start a server with one bucket; give the URI of a prefix in it, up to the options: add a name with `below`."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin:
            address = f"127.0.0.1:{int(process.stdout.readline())}"
            files = pafs.S3FileSystem(
                access_key="test",
                secret_key="test",
                endpoint_override=address,
                scheme="http",
                allow_bucket_creation=True,
            )
            files.create_dir("bucket")
            yield f"s3://test:test@bucket?scheme=http&region=us-east-1&endpoint_override={quote(address)}"


def below(uri: str, name: str) -> str:
    """The URI of a prefix below another one."""
    place, _, options = uri.partition("?")
    return f"{place}/{name}?{options}"
