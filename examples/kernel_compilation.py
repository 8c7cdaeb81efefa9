"""Shows which kernels are being compiled, so that a first run does not stand still in silence."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.event import Event, Listener, install_listener


class _Compilations(Listener):
    """Names each kernel that Numba compiles; kernels that it loads from its cache on disk cause no event."""

    def __init__(self) -> None:
        self.kernels: set[str] = set()

    def on_start(self, event: Event) -> None:
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("numba"):  # a part of Numba's own that a kernel calls
            return
        if not self.kernels:
            print("Compiling kernels. Later runs load them from disk.")
        self.kernels.add(function.__qualname__)
        line = f"  {len(self.kernels):>3}  {function.__module__}.{function.__qualname__}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr)

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def show_compilation() -> Iterator[None]:
    """Show what is compiled while the block runs, and say at its end how long the kernels took."""
    started = time.monotonic()
    with install_listener("numba:compile", _Compilations()) as compilations:
        yield
    seconds = time.monotonic() - started
    if compilations.kernels and sys.stderr.isatty():
        print(file=sys.stderr)
    done = f"{len(compilations.kernels)} compiled" if compilations.kernels else "loaded from disk"
    print(f"Kernels: {done}, {seconds:.1f} s\n")
