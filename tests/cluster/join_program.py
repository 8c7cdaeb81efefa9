"""Programs that the tests run on machines of a cluster: `python join_program.py NAME ARGUMENTS`.

collect IN OUT   join the rows of a folder, write the results to a file, print where the workers are
flow             feed a join for ever, print a line when results come, and the error that ends it
detach NAME      launch a join that outlives the program
use NAME         attach to it, feed it, print its results and its status, and stop it
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

import interlace as il

CANARY = "a canary that nobody may hear sing"
JOIN = il.StreamJoin(
    "R",
    "S",
    "R.power < S.power AND R.cool > S.cool",
    (il.CountWindow(400), il.CountWindow(300)),
    select=["R.id", "S.id", "R.text"],
    using=il.SPOJoin(elements=2, merge_interval=60),
)
SOURCES = {"R": ["R-0"], "S": ["S-0"]}


def rows(seed: int, count: int) -> pa.Table:
    """Rows of one stream; every one of them carries the canary."""
    rng = np.random.default_rng(seed)
    power = rng.integers(0, 200, count)
    return pa.table(
        {
            "id": np.arange(count),
            "power": power,
            "cool": power + rng.integers(-5, 6, count),
            "text": [f"{CANARY} {number}" for number in range(count)],
        }
    )


def launch(placement: il.Workers | Literal["default"] = "default", **options: object) -> il.RunningJoin:
    """Launch the join on the cluster of this machine."""
    runtime = il.RayRuntime(address="auto", placement=placement)
    return JOIN.launch(runtime, sources=SOURCES, **options)  # type: ignore[arg-type]


def tell(**facts: object) -> None:
    """Print facts for the test that runs this program."""
    print(json.dumps(facts), flush=True)


def collect(folder: str, output: str) -> None:
    """Join the rows of files; the results go to another."""
    tables = {stream: pa.ipc.open_file(Path(folder) / stream).read_all() for stream in "RS"}
    with launch() as running:
        tokens = [str(running.endpoint(name, control).token) for name in "RS" for control in (False, True)]
        tokens.append(str(running.endpoint("results").token))
        status = running.status()
        tell(
            nodes=sorted({worker.node for worker in status.workers}),
            workers=len(status.workers),
            encrypted=status.encrypted,
            locations=[running.endpoint(name).location for name in "RS"],
            tokens=tokens,
        )
        for stream, table in tables.items():
            for batch in table.to_batches(max_chunksize=100):
                running.send(stream, batch, source=f"{stream}-0")
        running.finish()
        results = pa.Table.from_batches(list(running.results()))
    with pa.ipc.new_file(output, results.schema) as file:
        file.write_table(results)


def flow() -> None:
    """Feed a join until something ends it."""
    running = launch()
    tell(places=[(*task, worker.node) for worker in running.status().workers for task in worker.tasks])
    came = threading.Event()
    errors: list[BaseException] = []

    def read() -> None:
        try:
            for _ in running.results():
                came.set()
        except BaseException as error:
            errors.append(error)

    reading = threading.Thread(target=read)
    reading.start()
    told = False
    try:
        for number in itertools.count():
            for stream, seed in (("R", 1), ("S", 2)):
                running.send(stream, rows(seed + 2 * number, 100), source=f"{stream}-0")
            if came.is_set() and not told:
                tell(flowing=True)
                told = True
    except il.InterlaceError as error:
        reading.join()
        for each in (error, *errors):
            tell(error=type(each).__name__, text=str(each))
    running.stop()


def detach(name: str) -> None:
    """Launch a join and leave it."""
    launch(il.Workers(2), name=name, detached=True)
    tell(launched=name)


def use(name: str) -> None:
    """Use a join that another program launched."""
    running = il.attach(name)
    assert isinstance(running, il.RunningJoin)
    tell(state=running.status().state.value, detached=running.status().detached)
    for stream, seed in (("R", 1), ("S", 2)):
        running.send(stream, rows(seed, 500), source=f"{stream}-0")
    running.finish()
    tell(rows=sum(batch.num_rows for batch in running.results()))
    running.stop()
    try:
        il.attach(name)
    except il.InterlaceError as error:
        tell(error=type(error).__name__, text=str(error))


PROGRAMS: dict[str, Callable[..., None]] = {"collect": collect, "flow": flow, "detach": detach, "use": use}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
