"""A builder for one alternative of a condition: its number is added to the names of its components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from topology import DEFAULT_STREAM, Bolt, Grouping, Subscriptions, TopologyBuilder


class BranchBuilder(TopologyBuilder):
    """Adds bolts to another builder under names that end in `suffix`."""

    def __init__(self, whole: TopologyBuilder, suffix: str) -> None:
        super().__init__()
        self._whole = whole
        self._suffix = suffix

    def bolt(self, name: str, bolt: Bolt, parallelism: int = 1) -> Subscriptions:
        return _BranchSubscriptions(self._whole.bolt(name + self._suffix, bolt, parallelism), self._suffix)


class _BranchSubscriptions(Subscriptions):
    def __init__(self, within: Subscriptions, suffix: str) -> None:
        self._within = within
        self._suffix = suffix

    def resources(
        self, *, cpus: float | None = None, memory: int | None = None, labels: Mapping[str, str] | None = None
    ) -> Self:
        self._within.resources(cpus=cpus, memory=memory, labels=labels)
        return self

    def grouping(self, producer: str, grouping: Grouping, stream: str = DEFAULT_STREAM) -> Subscriptions:
        self._within.grouping(producer + self._suffix, grouping, stream)
        return self
