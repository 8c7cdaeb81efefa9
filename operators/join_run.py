"""Runs a join over finite inputs; returns its results together with what was observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from operators.explanation import Explanation, explain
from operators.feeding import Feeding, sources_of
from operators.join_arguments import check_inputs, check_launch
from operators.resolved_join import ResolvedJoin
from operators.running_join import start
from operators.steady_results import conformed
from topology import Metrics, Rows, Runtime

if TYPE_CHECKING:
    from operators.join import StreamJoin

Inputs: TypeAlias = Mapping[str, Rows | Iterable[Rows] | Mapping[str, Rows | Iterable[Rows]]]
"""For each stream its rows, or frames that come one after the other, or a mapping of source name to either."""


@dataclass(frozen=True, eq=False)
class JoinRun:
    """The outcome of `StreamJoin.run`.

    result:  all results, in result order.
    late:    the rows that took no part: stream, source, offset, event_time, reason.
    metrics: what each task counted.
    schemas: the schema of each stream.
    """

    result: pa.Table
    late: pa.Table
    metrics: Metrics
    schemas: Mapping[str, pa.Schema]
    _join: ResolvedJoin = field(repr=False)

    def explain(self) -> Explanation:
        """Show what ran, why, and what was observed."""
        return explain(self._join, self.schemas, self.metrics)


def run_join(join: StreamJoin, inputs: Inputs, runtime: Runtime | None, *, read_late: bool) -> JoinRun:
    """Run a join over finite inputs; without `read_late` the log counts the late rows, and `late` stays empty."""
    names = join.stream_names
    check_inputs(inputs, names)
    feeds = [feed for stream in names for feed in sources_of(stream, inputs[stream])]
    sources = {stream: [feed.source for feed in feeds if feed.stream == stream] for stream in names}
    check_launch(runtime, sources, names)
    with start(join, runtime, sources) as running:  # finite inputs: no need to warn of unbounded windows
        for feed in feeds:
            if feed.schema is not None:
                running.pin(feed.stream, feed.schema)
        with Feeding(running, feeds) as feeding:
            batches = list(running.results())
        feeding.raise_error()
        schema = running.result_schema()
        late = pa.Table.from_batches(running.late() if read_late else (), running.late_schema())
        if not read_late:
            running.warn_of_late_rows()
        result = pa.Table.from_batches([conformed(batch, schema) for batch in batches], schema)
        return JoinRun(result, late, running.metrics(), running.schemas, join.resolved)
