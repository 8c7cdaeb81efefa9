"""files: tables in files and on standard input, read and written batch by batch.

In: paths of Parquet, CSV, JSON lines and Arrow files, directories, globs, standard input. Out: record batches in the
order of event time; files that appear whole or not at all. Imports topology only.
"""
