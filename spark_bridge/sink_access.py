"""A sink of a topology as Spark's data source sees it: where it is, what its columns are, and how its rows fit them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark_bridge.errors import calling
from spark_bridge.options import option
from spark_bridge.schemas import completed, separated, spark_ready, spark_schema
from spark_bridge.tokens import token_for
from topology import Endpoint, FlightClient, SchemaError

SCHEMA_SECONDS = 30.0
"""How long to wait for the first results where nothing else tells their columns."""

LOOK_SECONDS = 0.1
"""How often to look whether they have come."""


@dataclass(frozen=True, repr=False)
class SinkAccess:
    """What a reader of a sink needs in any process of Spark. It is pickled with the reader, token included."""

    endpoint: Endpoint
    sink: str

    @classmethod
    def of(cls, options: Mapping[str, str], tokens: Mapping[str, str]) -> SinkAccess:
        """Return the sink that the options of a data source name; raises an `InputError` if they name none."""
        uri, sink = option(options, "endpoint"), option(options, "sink")
        Endpoint.from_uri(uri, "")  # raises if it is none
        return cls(Endpoint.from_uri(uri, token_for(sink, tokens)), sink)

    def connect(self) -> FlightClient:
        """Connect to the sink; use it inside `calling(access.endpoint)`."""
        return FlightClient(self.endpoint)

    def schema(self) -> StructType:
        """The columns of the results in Spark: as the endpoint says, or else as the first results show."""
        known = self.endpoint.schema or self._schema_of_first_results()
        ready = spark_ready(known)
        return spark_schema(pa.schema(list(zip(_names(ready), ready.types, strict=True))))

    def rows(self, schema: StructType, first: int, end: int | None) -> Iterator[pa.RecordBatch]:
        """Read results by number, in the columns of `schema`, on an executor."""
        target = to_arrow_schema(schema, timezone="UTC")
        with calling(self.endpoint), self.connect() as client:
            for rows in client.rows(self.sink, first, end):
                if rows.num_rows:
                    yield completed(rows.rename_columns(_names(rows.schema)), target)

    def _schema_of_first_results(self) -> pa.Schema:
        end = time.monotonic() + SCHEMA_SECONDS
        with calling(self.endpoint), self.connect() as client:
            while (schema := client.columns(self.sink)) is None:
                if client.extent(self.sink).complete or time.monotonic() >= end:
                    raise SchemaError(
                        f"the columns of sink '{self.sink}' are not known, because it has had no rows: take its "
                        f"endpoint when both streams have sent rows or been pinned, or name them: .schema('R_id LONG')"
                    )
                time.sleep(LOOK_SECONDS)
        return schema


def _names(schema: pa.Schema) -> list[str]:
    return separated(schema, "_")
