"""An index with arguments of its own, for any setting of an engine that takes the name of an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indexes import CATALOGUE, check_whole_number, make_index
from operators.query.errors import JoinError

Argument = int | float | str

FROM_THE_JOIN = ("window", "dimensions", "key", "first_position")
"""Arguments that follow from the join."""


@dataclass(frozen=True)
class ConfiguredIndex:
    """An index of the catalogue, with some arguments of its class in place of those that suit the window.

    name:            its name in the catalogue.
    arguments:       by the names of the class's constructor.
    engine_settings: settings of `IndexJoin` that the index brings along, by their names there.

    >>> ConfiguredIndex("B-chain", {"chain_length": 4})
    ConfiguredIndex('B-chain', chain_length=4)
    """

    name: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    engine_settings: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        if self.name not in CATALOGUE:
            raise JoinError(f"ConfiguredIndex: no index is called {self.name!r}; choose one of {', '.join(CATALOGUE)}")
        given = [name for name in FROM_THE_JOIN if name in self.arguments]
        if given:
            raise JoinError(f"{self.name}: {given[0]} follows from the join: leave it out")
        try:
            make_index(self.name, window=1000, arguments=self.arguments)
        except (ValueError, TypeError) as error:
            raise JoinError(f"{self.name} cannot be made with {dict(self.arguments)}: {error}") from None

    def __repr__(self) -> str:
        return f"ConfiguredIndex({', '.join([repr(self.name), *self._shown])})"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self._shown)})"

    @property
    def _shown(self) -> list[str]:
        return [f"{name}={value!r}" for name, value in self.arguments.items()]


class PIMTree(ConfiguredIndex):
    """The partitioned in-memory merge tree with settings of its own, for any engine that takes an index.

    Paper: "Parallel Index-based Stream Join on a Multicore CPU", Shahvarani, Jacobsen, sections 3.2, 3.3, 4.

    merge_ratio:     the new rows, as a share of the window, that start a merge; None: what suits the window.
    insertion_depth: the level of the large tree whose nodes divide the new rows into partitions; None: a usual one.
    blocking:        whether inserts and probes wait for a merge.
    task_size:       rows of a work item, `task_rows` of `IndexJoin`; other engines have no work items and refuse it.
    threads:         threads that insert and probe, `threads` of `IndexJoin`; other engines refuse it.

    >>> PIMTree(merge_ratio=1 / 8, blocking=True)
    ConfiguredIndex('PIMTree', merge_ratio=0.125, merge='blocking')
    """

    def __init__(
        self,
        merge_ratio: float | None = None,
        insertion_depth: int | None = None,
        blocking: bool = False,
        task_size: int | None = None,
        threads: int | None = None,
    ) -> None:
        if not isinstance(blocking, bool):
            raise JoinError(f"PIMTree: blocking must be True or False, not {blocking!r}")
        arguments: dict[str, Any] = {"merge_ratio": merge_ratio, "insertion_depth": insertion_depth}
        arguments["merge"] = "blocking" if blocking else None
        for name, value in (("task_size", task_size), ("threads", threads)):
            check_whole_number("PIMTree", name, value, optional=True, error=JoinError)
        settings = {"task_rows": task_size, "threads": threads}
        super().__init__("PIMTree", _given(arguments), engine_settings=_given(settings))


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
