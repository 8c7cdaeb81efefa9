"""flight: Arrow Flight: the wire format, tokens, ports, edges between tasks, a topology's server and client.

In: batches and control messages. Out: the same, in another process. Imports graph, checks, tasks, entry and handle.
"""
