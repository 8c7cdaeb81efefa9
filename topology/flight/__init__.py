"""flight: Arrow Flight for clients: how calls name operations, a topology's server and client, feeds of rows.

In: rows of clients. Out: results. Imports graph, checks, tasks, entry, handle and security.
"""
