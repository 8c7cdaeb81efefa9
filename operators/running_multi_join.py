"""The handle of a running join of more than two streams."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from operators.engines.shared.engine import Engine
from operators.explanation import Explanation
from operators.intake.late_rows import LATE
from operators.multi_explanation import explain_several
from operators.query.errors import JoinError
from operators.running_join import RunningJoin
from operators.steady_results import SteadyReading
from topology import Reading, RunningTopology, Wish

if TYPE_CHECKING:
    from operators.multi_join import MultiJoin


class RunningMultiJoin(RunningJoin):
    """As `RunningJoin`, for any number of streams."""

    join: MultiJoin  # type: ignore[assignment]

    def __init__(self, running: RunningTopology, join: MultiJoin) -> None:
        super().__init__(running, join)  # type: ignore[arg-type]

    def open_reader(self, sink: str | None, after: int | None, take_over: bool) -> Reading:
        reading = self._running.open_reader(sink, after, take_over)
        return SteadyReading(reading, self._known_late_schema) if sink == LATE else reading

    def rebalance(self, *, using: Engine | None = None, placement: Wish | None = None, **counts: Any) -> None:
        """As `Handle.rebalance`; a join of several streams has one element and one way to run, so only `placement`."""
        if using is not None or counts:
            raise JoinError(
                "a join of more than two streams has one element, which cannot be divided or exchanged: give placement="
            )
        self._running.change(self.join.topology(), placement, partial(RunningMultiJoin, join=self.join))

    def explain(self) -> Explanation:
        """Show what runs, why, and what has been observed so far, such as the order of probing."""
        return explain_several(self.join.resolved, self.metrics())

    def result_schema(self) -> pa.Schema:
        """Return the columns of the results; those of a stream that has sent nothing yet have type null."""
        return self.join.resolved.result_schema(self.schemas)

    def _check(self, schemas: Mapping[str, pa.Schema]) -> None:
        self.join.resolved.check(schemas)
