"""flight: Arrow Flight: the wire format, tokens, ports, channels between tasks, and the door for clients.

In: Batches and control messages. Out: The same, in another process. Imports graph, tasks, entry and handle.
"""
