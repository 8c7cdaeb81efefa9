"""topology: the graph of components and how it runs.

In: rows from outside, as Arrow record batches, through an `Input` or a user's own `Spout`.
Out: rows that reach a `Sink`, read from the handle that `launch` returns.
Imports numpy and pyarrow, and ray only in the room on_ray. Knows nothing of joins, Spark or indexes.

Read in this order: graph/messages, components, groupings, builder, graph; tasks/inbox, task_loop; entry/input_guard,
source_ledger, staging, ingest; handle/running; local/runtime; flight/server; on_ray/running.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
