"""Spark jobs that end with the code that started them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def tagged_jobs(context: Any, tag: str) -> Iterator[None]:
    """Tag the jobs started inside; cancel them if an error or Ctrl-C ends the block."""
    context.addJobTag(tag)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # Spark itself may be what failed
            context.cancelJobsWithTag(tag)
        raise
    finally:
        with suppress(Exception):
            context.removeJobTag(tag)
