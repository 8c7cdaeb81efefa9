"""A join that serves clients over Flight, in a process of its own: if a client can end it, a test fails, not the run.

Prints one line of JSON: where and with which tokens its streams and results are reached. Ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys

import pyarrow as pa

from operators import CountWindow, StreamJoin
from topology import LocalRuntime, Quotas

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("name", pa.string())])


def main() -> None:
    quotas = Quotas(**json.loads(sys.argv[1]))
    join = StreamJoin("R", "S", "R.t = S.t AND R.k <= S.k", CountWindow(1000), select=["R.k", "S.k"], event_time="t")
    running = join.launch(LocalRuntime(quotas=quotas))
    streams = {name: running.endpoint(name, control=True) for name in ("R", "S")}
    write_only, results = running.endpoint("R"), running.endpoint("results")
    given = {**streams, "write only": write_only, "results": results}
    ends = {name: (endpoint.location, str(endpoint.token)) for name, endpoint in given.items()}
    print(json.dumps({"pid": os.getpid(), "endpoints": ends}), flush=True)
    sys.stdin.readline()
    os._exit(0)


if __name__ == "__main__":
    main()
