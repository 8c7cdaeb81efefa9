"""Spark jobs that end with the code that started them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from spark_bridge.session import is_connected


@contextmanager
def tagged_jobs(context: Any, tag: str) -> Iterator[None]:
    """Tag the jobs started inside; cancel them if an error or Ctrl-C ends the block."""
    with _tagged(tag, context.addJobTag, context.cancelJobsWithTag, context.removeJobTag):
        yield


@contextmanager
def tagged_work(spark: Any, tag: str) -> Iterator[None]:
    """As `tagged_jobs`, for a session of either kind."""
    if is_connected(spark):
        with _tagged(tag, spark.addTag, spark.interruptTag, spark.removeTag):
            yield
    else:
        with tagged_jobs(spark.sparkContext, tag):
            yield


@contextmanager
def _tagged(
    tag: str, add: Callable[[str], object], cancel: Callable[[str], object], remove: Callable[[str], object]
) -> Iterator[None]:
    add(tag)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # Spark itself may be what failed
            cancel(tag)
        raise
    finally:
        with suppress(Exception):
            remove(tag)
