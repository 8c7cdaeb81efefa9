"""Measure how much memory an index takes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from indexes import WindowIndex


def bytes_allocated(fill: Callable[[], WindowIndex]) -> tuple[int, int]:
    """The `nbytes` of the index that `fill` makes, and the bytes that stayed allocated while it was made."""
    fill()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        index = fill()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    return index.nbytes, kept
