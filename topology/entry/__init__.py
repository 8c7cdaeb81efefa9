"""entry: where rows enter: the guard that checks and numbers them, staging, and the watch for idle sources.

In: Record batches of physical sources. Out: Numbered batches and watermarks for input tasks. Imports graph and tasks.
"""
