"""spark_bridge: moves rows between Spark and a running topology.

In: the partitions of a DataFrame, which executors send straight to the topology over Arrow Flight (`feed`).
Out: the rows of a sink, which an executor reads over Arrow Flight, as a DataFrame (`results_dataframe`).
Imports pyspark, pyarrow, and from this project only topology. Java is needed when a Spark session starts, not when this
package is imported.

Read in this order: session, feed, stage_partition (runs on executors), results, results_spool (runs on executors).

The driver sees one small row per partition. No row of data passes through it or becomes a Python or pandas object.
Executors must be able to import this package (installed, or sent with `spark.sparkContext.addPyFile`). They must run on
the topology's machine, because its server listens on the loopback address only.

A Spark Connect session is refused with an `UnsupportedSessionError`. Spark Connect has most of the functions used here:
`mapInArrow`, `sortWithinPartitions`, `localCheckpoint`, and tags (`addTag`, `interruptTag` instead of `addJobTag`,
`cancelJobsWithTag`). It lacks two. `DataFrame.rdd` gives the number of partitions before a job runs, so that all
sources can be announced before the first row, and released if the job fails. `SparkContext.accumulator` carries the
progress and the reader's final status. A port could announce one source that holds the gate, take the number of
partitions from the status rows at the end of the job, and put the reader's status into a last row. The server's Python
would need this package (`spark.addArtifacts(..., pyfile=True)`), and the executors a connection to the topology.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
