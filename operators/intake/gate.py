"""The gate: merges any number of physical sources into one total order.

The order is (event time, source name, offset); if two streams share a source name, the stream's name comes before the
offset. A row passes when no open source can still deliver an earlier one. So the merged sequence is a function of the
rows alone: not of when they arrive, nor of how they are cut into batches.

In: batches of each stream, each source in its own order; sources that open, fall silent and end.
Out: for each step one batch per stream, with the sequence number of each row in column `#seq` (and its time in `#time`
where the stream has no column for it, or one of a coarser unit than another stream), then a punctuation. Rows that are
late or have no time are reported at once; see `intake.late_rows`.

Rows that cannot pass yet wait here, on disk beyond a bound: if they filled the inbox instead, they could block the very
source they wait for. The gate emits a step when it is full or when the inbox is empty. So steps grow with the backlog,
and rows of a quiet stream pass at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from operators.intake.gate_task import GateTask, kinds_of
from operators.intake.kept_steps import KeptSteps
from operators.intake.late_rows import LATE_STREAM
from operators.intake.retention import Retention
from operators.intake.scale_gate import STEP_ROWS
from operators.query.durations import Duration, written
from operators.query.errors import JoinError
from topology import Bolt, Component, Facts, Task, TaskContext, time_from_json

DEFAULT_STEP_ROWS = STEP_ROWS


@dataclass(frozen=True)
class Gate(Bolt):
    """Merges the streams in `event_time`, a mapping of stream to its event-time column (None: the row's number).

    out_of_order: the bound of each stream whose sources may be out of order.
    retention:    how much of the past results depend on; None: on all of it.
    check:        checks the schemas of all streams together, before the first step, where no handle does.
    fits:         checks them where rows that were kept for another query are adopted.
    announces:    in a part of a topology, tells the columns of a stream before its first rows pass.
    snapshots:    in a topology with a state, a snapshot of it has all that a new life of the join needs.
    """

    event_time: tuple[tuple[str, str | None], ...]
    step_rows: int = DEFAULT_STEP_ROWS
    out_of_order: tuple[tuple[str, Duration], ...] = ()
    retention: Retention | None = None
    check: Callable[[Mapping[str, pa.Schema]], None] | None = None
    fits: Callable[[Mapping[str, pa.Schema]], None] | None = field(default=None, compare=False)
    announces: bool = False
    snapshots: bool = False
    beside = "inputs"
    decides = True

    def __post_init__(self) -> None:
        if LATE_STREAM in dict(self.event_time):
            raise JoinError(f"a stream cannot be called '{LATE_STREAM}': rename it")

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {**{stream: None for stream, _ in self.event_time}, LATE_STREAM: None}

    @property
    def note(self) -> str:
        bounds = [f"{stream} out of order by up to {written(bound)}" for stream, bound in self.out_of_order]
        return "; ".join(["ordered by event time, source, offset", *bounds])

    def start_for(self, starts: Sequence[Facts], acknowledged: Facts) -> int:
        return 0 if self.retention is None else self.retention.start_for(starts, acknowledged)

    def adopt(self, reached: Facts, schemas: Mapping[str, pa.Schema]) -> Facts:
        if self.fits is not None:
            self.fits(schemas)
        if self.retention is None:
            return {}
        time = time_from_json(reached["time"])
        assert time is not None, "a place that was reached has a time"
        unit, kinds = reached["unit"], kinds_of(dict(self.event_time), schemas)
        return self.retention.reached(reached["at"], time, kinds, unit)

    def durable(self) -> Component:
        return replace(self, snapshots=self.retention is not None and self.retention.forgets)

    def build(self, context: TaskContext) -> Task:
        return GateTask(
            dict(self.event_time),
            self.step_rows,
            context.spill_directory,
            dict(self.out_of_order),
            self.retention,
            self.check,
            self.announces,
            KeptSteps(self.retention, self.step_rows) if self.snapshots and self.retention is not None else None,
        )
