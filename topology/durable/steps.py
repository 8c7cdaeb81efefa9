"""Work on a store, cut into steps, so that a driver decides what happens in between.

A function that ends in `_steps` is a generator: it pauses before each call of the store. A runtime finishes it at once;
a simulation lets other writers run, or crashes the machine, at each pause.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

Steps = Generator[None, None, Result]


def finish(steps: Steps[Result]) -> Result:
    """Take all steps, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
