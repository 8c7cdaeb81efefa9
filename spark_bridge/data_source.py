"""The data source `interlace`: how queries of Spark name a running topology.

    connect_spark(spark, running)
    df.writeStream.format("interlace").option("endpoint", running.endpoint("R").uri).option("stream", "R")...
    spark.readStream.format("interlace").option("endpoint", running.endpoint("results").uri).option("sink", "results")

Spark makes it anew in each of its processes, from the registered class and the options; no session is at hand there.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamArrowWriter, DataSourceStreamReader
from pyspark.sql.types import StructType

from spark_bridge.deployment import prepare_executors
from spark_bridge.options import keep_tokens_out_of_event_logs
from spark_bridge.tokens import CarriesTokens, session_tokens, topology_tokens
from topology import Handle

NAME = "interlace"


class InterlaceDataSource(DataSource, metaclass=CarriesTokens):
    """Register it with `spark.dataSource.register(InterlaceDataSource)`; then `format("interlace")` is known.

    Options of `writeStream`:
        endpoint: the URI of the input, `running.endpoint(stream).uri`.
        stream:   the input.
        feed:     the name of what this query writes; it belongs to the query, and is the name of its source.
        takeOver: "true": take the feed from a query that had it before.
    Options of `read` and `readStream`; columns are called R_id in place of R.id:
        endpoint: the URI of the sink, `running.endpoint("results").uri`.
        sink:     the sink.
        run:      a name for this run of the topology, which the checkpoint of a query keeps: a query whose checkpoint
                  belongs to another run is refused. Of `readStream`; default: none.
        maxRowsPerTrigger: how many results a micro-batch has at most; default: all that are there.
    The token of the endpoint is in Spark's configuration, `spark.interlace.token`: for writing when the query is
    started, for reading when the class is registered. `connect_spark` needs neither.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format. Spark asks for it in the user's process when the data source is registered."""
        keep_tokens_out_of_event_logs(session_tokens())
        return NAME

    def schema(self) -> StructType:
        """The columns of a sink."""
        from spark_bridge.sink_access import SinkAccess

        return SinkAccess.of(self.options, type(self).tokens).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the results of a bounded run."""
        from spark_bridge.results_reader import ResultsReader
        from spark_bridge.sink_access import SinkAccess

        return ResultsReader(SinkAccess.of(self.options, type(self).tokens), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return what reads the results of a run that goes on, in micro-batches."""
        from spark_bridge.results_stream_reader import ResultsStreamReader
        from spark_bridge.sink_access import SinkAccess

        return ResultsStreamReader(SinkAccess.of(self.options, type(self).tokens), schema, self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802  Spark's name
        """Return what writes the micro-batches of a query."""
        from spark_bridge.feed_writer import FeedWriter

        return FeedWriter.of(self.options, schema, type(self).tokens)


def connect_spark(spark: SparkSession, running: Handle) -> None:
    """Register `format("interlace")` with a session, with the tokens of all streams and sinks of a topology.

    Executors that lack our code get it first. For another topology, call it again with that one; queries that run keep
    the tokens with which they started.
    """
    for name in [*running.topology.inputs, *running.topology.sinks][:1]:
        prepare_executors(spark, running.endpoint(name))
    spark.dataSource.register(InterlaceDataSource.with_tokens(topology_tokens(running)))
    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        # Spark looks for the format in the session that is active in the thread. A thread of the program's own has none
        # until something makes it active, as this does.
        spark.createDataFrame([], "nothing INT")
