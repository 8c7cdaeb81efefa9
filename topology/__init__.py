"""topology: the graph of components and how it runs.

In flows: rows from outside, as Arrow record batches, through an `Input` or a user's own `Spout`.
Out flows: rows that reach a `Sink`, read from the handle that `launch` returns.
May import: numpy, numba, pyarrow; ray only in files named for Ray. Knows nothing of joins, Spark or indexes.

Read in this order: messages, components, groupings, builder, graph, task_loop, inbox, input_guard, ingest, running,
local_runtime, flight_door, ray_runtime.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
