"""Ray Data in and out: the blocks of a dataset become sources of an input, and results become a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from topology import Handle

if TYPE_CHECKING:
    import ray.data


def send_dataset(dataset: ray.data.Dataset, running: Handle, stream: str) -> int:
    """Send all rows of a dataset to an input, each block as a source; return how many were new.

    Blocks are called `block 0`, `block 1`, ..., and all are announced first. With event time, each block must be in
    order, as after `dataset.sort(column)`. The dataset is computed before the first row is sent. Called again after a
    failure with the same dataset, it goes on behind what the input has; blocks must then have the same rows in the same
    order.
    """
    import ray

    refs: list[Any] = dataset.to_arrow_refs()
    names = [f"block {number}" for number in range(len(refs))]
    running.open(stream, *names)
    new = 0
    for name, ref in zip(names, refs, strict=True):
        table: pa.Table = ray.get(ref)
        offset = running.next_offset(stream, name)
        if table.num_rows > offset:
            new += running.send(stream, table.slice(offset), name, offset=offset) - offset
        running.finish(stream, name)
    return new


def results_dataset(running: Handle, sink: str | None = None, timeout: float | None = None) -> ray.data.Dataset:
    """Read the results of a sink to their end and return them as a dataset, a block for each batch, in their order.

    timeout: stop after so many seconds without results; None: at their end only.
    """
    import ray.data

    refs = [ray.put(pa.Table.from_batches([batch])) for batch in running.results(sink, timeout) if batch.num_rows]
    return ray.data.from_arrow_refs(refs) if refs else ray.data.from_arrow(pa.table({}))
