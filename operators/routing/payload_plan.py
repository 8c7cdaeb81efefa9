"""The payload that the router emits for the collector: columns to show, columns to check, and when rows expire."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from operators.intake.gate_task import SEQ
from operators.intake.time_unit import TIME, time_column
from operators.protocol.columns import Int64
from operators.protocol.payload import EXPIRED_BELOW, HIDDEN
from operators.query.expressions import Expression
from operators.query.kinds import Kind
from operators.routing.pair_check import PairCheck
from operators.values.evaluation import evaluate
from operators.values.selection import Selection


@dataclass(frozen=True)
class PayloadPlan:
    """The columns of each side that results show, and those that candidate pairs are checked by.

    wheres: for each side the condition that rows must satisfy to come out unmatched or counted, or None.
    times:  the event-time column of each side, for results with event times, or None: row numbers.
    """

    selection: Selection
    kind: Kind
    checks: tuple[PairCheck, ...]
    wheres: tuple[Expression | None, Expression | None] = field(default=(None, None), compare=False)
    times: tuple[str | None, str | None] | None = None

    def columns(self, side: int, schema: pa.Schema) -> list[str]:
        """The columns of a side, each once."""
        names = self.selection.needed_columns(side, schema)
        for check in self.checks:
            names += check.columns(side, schema)
        return list(dict.fromkeys(names))

    def rows(
        self, side: int, rows: pa.RecordBatch, columns: list[str], expired: tuple[Int64 | None, Int64 | None]
    ) -> pa.RecordBatch:
        """The payload of a step's rows; `columns` are those that `columns` found for their schema."""
        payload = rows.select([*columns, SEQ])
        if self.times is not None:
            payload = payload.append_column(TIME, rows.column(time_column(rows.schema, self.times[side])))
        for name, positions in zip(EXPIRED_BELOW, expired, strict=True):
            if positions is not None:
                payload = payload.append_column(name, pa.array(positions))
        where = self.wheres[side]
        if where is not None and self.kind.may_show_alone(side):
            shown = evaluate(where, lambda column: rows.column(column.name), rows.num_rows)
            payload = payload.append_column(HIDDEN, pc.invert(pc.fill_null(shown, False)))
        return payload
