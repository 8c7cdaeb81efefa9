"""process: a group of tasks that share one process, driven by a few threads.

In: a `Topology` and the names of the tasks to run. Out: their messages, to inboxes here and to other processes.
Imports graph, durable, tasks, journal, steps, checks, entry, handle and spouts.
"""
