"""Window indexes: pure computation on columns.

In: key columns of consecutive rows (`Keys`). To probe: one closed interval per dimension and probe row
(`Interval`), and the positions that each probe row may meet (`Live`).
Out: the positions met, as compressed rows (`Matches`); sorted runs; snapshots made of plain arrays.
Imports NumPy, Numba and sortedcontainers, and no other package of ours.

Indexes know nothing of streams, time or processes. Kernels release the GIL, and several threads may probe an
index at once while nothing inserts; `WindowIndex.concurrent_inserts` marks those that threads may also fill.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
