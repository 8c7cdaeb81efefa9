"""entry: where rows from outside enter: they are checked, counted per source, staged if asked, and queued.

In: record batches of physical sources, or frames, which become such. Out: numbered batches and watermarks for input
tasks. Imports checks, durable, graph, journal and tasks.
"""
