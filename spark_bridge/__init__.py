"""spark_bridge: moves rows between Spark and a running topology.

In: the partitions of a bounded DataFrame, and the micro-batches of a streaming one, which executors send straight to
the topology over Arrow Flight (`feed`, `feed_batch`, `format("interlace")`).
Out: the rows of a sink, which executors read over Arrow Flight (`results_dataframe`, `format("interlace")`).
Imports pyspark, pyarrow, and from this project only topology. Java is needed when a Spark session starts, not when this
package is imported.

Read in this order: session, deployment (executors get what they lack), feed and stage_partition (bounded; the latter
runs on executors), streaming_feed, feed_writer and stage_micro_batch (streaming; the latter runs there, too), results,
results_spool, data_source.

The driver sees one small row per partition. No row of data passes through it or becomes a Python or pandas object.

Sessions of Spark Connect have neither RDDs nor accumulators: there the number of partitions is known when all of them
have reported, and progress is shown at the end. `feed(through=True)` needs jobs of one partition each, and the function
of `feed_batch` would run on the server, without the topology's handle: an `UnsupportedSessionError` refuses both.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
