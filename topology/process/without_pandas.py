"""Workers do without pandas, which nothing of ours needs: it would take each of them 0.2 s and 50 MB.

Arrow imports pandas, where it is installed, with its first conversion of anything, in order to recognise its types.
Here it looks while pandas is hidden, and concludes that there is none. When anything imports pandas, Arrow looks again,
so that it recognises the first object of pandas that there is.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

WITHOUT_PANDAS = {"topology", "operators", "indexes", "pyarrow", "numpy", *sys.stdlib_module_names}
"""Packages whose code works alike with and without pandas. That of the user may not: Arrow gives it nanoseconds as
objects of pandas, if it can."""


def hide_pandas() -> None:
    """Let Arrow work without pandas until somebody imports it; does nothing if somebody has, or when repeated."""
    if "pandas" in sys.modules or any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    import pyarrow as pa

    finder = _Finder()
    sys.meta_path.insert(0, finder)
    pa.scalar(0)  # Arrow looks for pandas
    finder.hides = False


def show_pandas() -> None:
    """Let Arrow use pandas again, if it was hidden and is installed."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        with suppress(ImportError):
            import pandas  # noqa: F401


class _Finder(MetaPathFinder):
    """Hides pandas first. Later, when pandas is imported, makes Arrow look for it again."""

    def __init__(self) -> None:
        self.hides = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "pandas":
            return None
        if self.hides:
            raise ModuleNotFoundError("hidden while Arrow looks for it", name=fullname)
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def run_and_tell(module: ModuleType) -> None:
                import pyarrow as pa

                run(module)
                pa.table({}).to_pandas()  # needs pandas, so Arrow looks for it

            loader.exec_module = run_and_tell
        return spec
