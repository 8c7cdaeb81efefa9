"""Refuses a stream that lacks columns the join needs; runs where rows enter the topology."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from operators.protocol.sides import LEFT, RIGHT
from operators.query.condition import Condition
from operators.query.errors import PredicateError
from operators.values.key_types import key_type
from operators.values.selection import Selection
from topology import SchemaError


@dataclass(frozen=True)
class StreamCheck:
    """Checks the schema of one stream of a join.

    streams: the stream of each side.
    columns: for each side the columns that the condition, `where` and `retain` mention.
    """

    stream: str
    condition: Condition
    selection: Selection
    streams: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]

    def __call__(self, schema: pa.Schema) -> None:
        reserved = [name for name in schema.names if name.startswith("#")]
        if reserved:
            raise SchemaError(f"stream '{self.stream}': column '{reserved[0]}' must not start with '#': rename it")
        for side in (LEFT, RIGHT):
            if self.streams[side] == self.stream:
                missing = [name for name in self.columns[side] if name not in schema.names]
                missing += self.selection.missing(side, schema)
                if missing:
                    raise SchemaError(
                        f"stream '{self.stream}': column '{missing[0]}', which the join needs, is missing; "
                        f"columns: {', '.join(schema.names)}"
                    )
                self._check_keys(side, schema)

    def _check_keys(self, side: int, schema: pa.Schema) -> None:
        for branch in self.condition.branches:
            for dimension in branch.dimensions:
                if not dimension.made and dimension.computed[side] is None:
                    name = dimension.column(side)
                    try:
                        key_type(name, schema.field(name).type)
                    except PredicateError as error:
                        raise SchemaError(f"stream '{self.stream}': {error}") from None
