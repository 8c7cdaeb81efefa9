"""Runs programs, each alone in a process of its own, without paying for the imports each time.

A server process imports what programs use, runs nothing, and forks for each program. The fork knows none of the names
of other programs: only the modules are loaded already. Started as `python fresh_process.py`, this file is the server:
it reads one path per line and answers each with one line of JSON.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """How a program ended."""

    status: int
    out: str
    err: str


class FreshProcesses:
    """Runs programs one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        )

    def run(self, code: str) -> Finished:
        program = self._folder / "program.py"
        program.write_text(code)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(program, file=self._server.stdin, flush=True)
        return Finished(**json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(timeout=60)
        self._server.stdout.close()


def serve() -> None:
    import pyarrow.compute  # noqa: F401

    import indexes
    import operators
    import topology

    for package in (indexes, operators, topology):
        for name in package.__all__:
            if "Ray" not in name:
                getattr(package, name)
    for line in sys.stdin:
        print(json.dumps(run_in_fork(line.strip())), flush=True)


def run_in_fork(program: str) -> dict[str, object]:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = 1
            try:
                runpy.run_path(program, run_name="__main__")
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return {"status": status, "out": out.read(), "err": err.read()}


if __name__ == "__main__":
    serve()
