"""Runs all kernels in their Python form, as before their first compilation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from indexes.kernels.compiled import Kernel
from indexes.kernels.interpreted import called_from_python


@contextmanager
def python_kernels() -> Iterator[None]:
    """Until the block ends, no kernel is called in compiled form, except those that have no other."""

    def call(self: Kernel, *arguments: Any) -> Any:
        return self.dispatcher(*arguments) if self.python is None else called_from_python(self.python)(*arguments)

    with patch.object(Kernel, "__call__", call):
        yield
