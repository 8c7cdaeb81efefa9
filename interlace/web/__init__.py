"""web: a REST API about running topologies, what Prometheus reads, and the live page.

In: HTTP requests with a token. Out: JSON, text, the page; actions on topologies. Imports watching; topology and
operators through their interfaces.
"""
