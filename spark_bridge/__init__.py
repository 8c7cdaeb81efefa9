"""spark_bridge: Spark on one side, a running topology on the other.

In flows: the partitions of a DataFrame, from the executors straight to the topology's door over Arrow Flight (`feed`).
Out flows: the rows of a sink, read by an executor over Arrow Flight, as a DataFrame (`results_dataframe`).
May import: pyspark, pyarrow, and of this project only the client's side of topology. Needs Java only when a Spark
session is started, not when it is imported.

Follow the data by opening: session, feed, staging_task (what executors run), then results, results_task.

The driver sees one small row per partition; no row of data passes through it, none becomes a Python or pandas object.
Executors must find this package (installed, or sent with `spark.sparkContext.addPyFile`), and must run where the
topology's door can be reached: it listens on the loopback address only, so on the same machine.

Spark Connect is refused with an `UnsupportedSessionError`. Of what is used here it has `mapInArrow`,
`sortWithinPartitions`, `localCheckpoint`, tags (`addTag`, `interruptTag` in place of `addJobTag`,
`cancelJobsWithTag`). It lacks `DataFrame.rdd`, which tells how many partitions a job will have before it runs, so that
all sources are announced before the first row, and freed should the job fail; and `SparkContext.accumulator`, which
carries progress and the reader's last word. A port to it would announce one source that holds the gate, learn the
partitions from the status rows when the job is done, and put the reader's word into a last row. The server's Python
would need this package (`spark.addArtifacts(..., pyfile=True)`) and, again, a way to the door.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
