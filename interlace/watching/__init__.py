"""watching: looks at a running topology again and again, and says how it is.

In: a `Handle`, embedded or on a cluster. Out: the last looks as numbers over time, what each component and edge does,
a verdict in sentences, and the text that Prometheus reads. Imports nothing of this package; topology through its
interface.
"""
