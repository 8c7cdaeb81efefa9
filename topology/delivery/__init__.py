"""delivery: results that are stored elsewhere, each row once, whatever dies in between.

In: the numbered results of a sink. Out: the same rows in a store outside the topology, such as Parquet files.
Imports graph and handle.

Read in this order: result_store (the interface), delivering (who calls it), result_files (where), parquet_store.
"""
