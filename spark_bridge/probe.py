"""What a Python worker of Spark tells about itself: asked before anything is fed, so that a lack is named, not traced.

This module travels to the executors by value, because they may lack our packages: it imports the standard library
alone, and the rest inside its functions.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("topology", "spark_bridge")
"""What our functions on executors import."""

CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Probe:
    """A function of Spark: returns JSON about its worker, and whether that reaches an address; "" for none."""

    host: str
    port: int

    def __call__(self, number: int) -> str:
        told = {
            "machine": socket.gethostname(),
            "python": f"{platform.python_version()} ({sys.executable})",
            "pyarrow": pyarrow_version(),
            "code": code_digest(),
            "unreachable": self.why_unreachable(),
        }
        return json.dumps(told)

    def why_unreachable(self) -> str:
        """Why there is no connection to the address; empty if there is one, or no address."""
        if not self.host:
            return ""
        try:
            socket.create_connection((self.host, self.port), CONNECT_SECONDS).close()
        except OSError as error:
            return str(error)
        return ""


def pyarrow_version() -> str:
    """The version of pyarrow; empty if it cannot be imported."""
    try:
        import pyarrow
    except ImportError:
        return ""
    return str(pyarrow.__version__)


def code_digest() -> str:
    """A digest of the sources of our packages as this process would import them; empty if one is missing.

    Code that was shipped is in a file that is named after its digest.
    """
    digest = hashlib.sha256()
    for package in PACKAGES:
        try:
            found = importlib.util.find_spec(package)
        except ImportError:
            found = None
        if found is None or found.origin is None:
            return ""
        folder = Path(found.origin).parent
        if folder.parent.suffix == ".zip":
            return folder.parent.stem.rpartition("_")[2]
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder.parent)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
