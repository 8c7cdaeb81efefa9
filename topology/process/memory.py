"""How a process of our own keeps memory that it has freed.

A task allocates the same large arrays again and again. By default the C library gives an array of some size back to the
system at once, and the system clears every page of the next one: a tenth of a worker's processor time. Arrow's own
allocator does the same a moment later, 2 MB at a time: another twentieth. So Arrow allocates from the C library.
"""

from __future__ import annotations

import ctypes
import os

import pyarrow as pa

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3

KEPT_BYTES = 64 * 1024 * 1024
"""The most that is kept at the end of the heap."""

LARGEST_KEPT_BYTES = 32 * 1024 * 1024
"""Arrays beyond this size still come from the system and go back there."""

_STEP_BYTES = 4 * 1024 * 1024


def keep_freed_memory() -> None:
    """Let this process reuse freed memory. Only for processes of our own: a program decides for itself.

    Whoever has chosen an allocator for Arrow (`ARROW_DEFAULT_MEMORY_POOL`) keeps it.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another system's C library
        return
    for option, value in (
        (_MMAP_THRESHOLD, LARGEST_KEPT_BYTES),
        (_TRIM_THRESHOLD, KEPT_BYTES),
        (_TOP_PAD, _STEP_BYTES),
    ):
        set_option(option, value)
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        # Not by setting this variable: Ray has imported Arrow by now.
        pa.set_memory_pool(pa.system_memory_pool())
