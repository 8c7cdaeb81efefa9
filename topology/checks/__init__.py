"""checks: what clients send, checked before anything believes it: messages, headers, rows, quotas.

In: bytes from clients. Out: sound rows, or a refusal. Imports graph.
"""
