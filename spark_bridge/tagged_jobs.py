"""Spark jobs that end with the code that started them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def tagged_jobs(context: Any, tag: str) -> Iterator[None]:
    """Tag the jobs started inside; should the block be left by an error or by Ctrl-C, they are cancelled."""
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
