"""Window indexes: pure computation on columns.

In flow key columns of consecutive rows (`Keys`), and for probes one closed interval per dimension
(`Interval`) with the positions each probe row may meet (`Live`). Out flow the positions met, in
compressed rows (`Matches`), sorted runs, and snapshots of plain arrays. Nothing here knows of
streams, time, processes or threads; the kernels release the GIL, and what is immutable may be probed
by several threads at once.

This package may import NumPy, Numba and sortedcontainers, and nothing of ours.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
