"""Reports of finished Spark tasks to the driver while a job runs: an accumulator that collects small values.

Spark adds a task's report when the task has succeeded: once per partition, even if tasks are retried or speculated.
"""

from __future__ import annotations

from typing import Any

from pyspark.accumulators import Accumulator, AccumulatorParam


class _Reports(AccumulatorParam):  # type: ignore[type-arg, unused-ignore]
    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802
        value1.extend(value2)
        return value1


def new_reports(context: Any) -> Accumulator:  # type: ignore[type-arg, unused-ignore]
    """Return an empty collection; Spark tasks call `add([value])`, and the driver reads `value`."""
    return context.accumulator([], _Reports())


class CountedAtTheEnd:
    """What `new_reports` returns, where tasks cannot report while the job runs."""

    def __init__(self) -> None:
        self.value: list[Any] = []
