"""A worker's Arrow allocates from the C library, which keeps freed memory, unless somebody has chosen otherwise."""

import os
import subprocess
import sys

PROGRAM = """
import pyarrow as pa
from topology.process.memory import keep_freed_memory

before = pa.default_memory_pool().backend_name
keep_freed_memory()
pool = pa.default_memory_pool()
held = pa.allocate_buffer(1_000_000)
print(before, pool.backend_name, pool.bytes_allocated() >= 1_000_000)
"""


def allocators(**environment: str) -> list[str]:
    """The allocators before and after, and whether what is allocated comes from the second."""
    inherited = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    return subprocess.check_output([sys.executable, "-c", PROGRAM], env=inherited | environment, text=True).split()


def test_arrow_allocates_from_the_c_library() -> None:
    assert allocators()[1:] == ["system", "True"]


def test_a_chosen_allocator_stays() -> None:
    before, after, _ = allocators(ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert (before, after) == ("mimalloc", "mimalloc")
