"""The window indexes by name, each with arguments that suit a window and a batch size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from indexes.kernels.whole_numbers import check_whole_number
from indexes.kernels.window_index import WindowIndex

SUBWINDOWS = 4
"""Subwindows of PanJoin's structures in a window: few, because every probe searches each of them."""


@dataclass(frozen=True)
class Place:
    """Where an index will serve.

    window:         rows that are live at once, about.
    batch:          rows that arrive at once, about.
    dimensions:     key columns.
    key:            the dimension that an index over one key is built on; the others filter.
    first_position: the position of the first row.
    """

    window: int
    batch: int
    dimensions: int = 1
    key: int = 0
    first_position: int = 0

    @property
    def of_all(self) -> dict[str, Any]:
        """The arguments of every index over all dimensions."""
        return {"dimensions": self.dimensions, "first_position": self.first_position}

    @property
    def of_one_key(self) -> dict[str, Any]:
        """The arguments of every index over one key."""
        return {**self.of_all, "key": self.key}

    @property
    def of_subwindows(self) -> dict[str, Any]:
        """The arguments of PanJoin's structures."""
        return {**self.of_one_key, "subwindow": max(1, -(-self.window // SUBWINDOWS))}


@dataclass(frozen=True)
class Recipe:
    """How to make an index. Listing one in `CATALOGUE` registers the index everywhere: `make_index`, engines, tests.

    kind:      the class, or a function that makes an index.
    arguments: the constructor's arguments for a place.
    bands:     whether the index answers ranges of one key well; benchmarks of band joins leave out the others.
    tiny:      values of arguments so small that a few rows cause splits, merges and overflows. Tests draw from them.
    """

    kind: Callable[..., WindowIndex]
    arguments: Callable[[Place], dict[str, Any]]
    bands: bool = True
    tiny: Mapping[str, Sequence[int | float | str]] = field(default_factory=dict)

    def make(self, place: Place, **replaced: Any) -> WindowIndex:
        """An empty index for a place, with some of the arguments replaced."""
        return self.kind(**{**self.arguments(place), **replaced})


def _public(name: str) -> Callable[..., WindowIndex]:
    """The class of that name, imported when an index is made: a process needs one or two of them."""

    def make(**arguments: Any) -> WindowIndex:
        made: WindowIndex = getattr(import_module("indexes"), name)(**arguments)
        return made

    return make


CATALOGUE: Mapping[str, Recipe] = {
    "LinearScan": Recipe(_public("LinearScan"), lambda at: {"first_position": at.first_position}),
    "NestedLoop": Recipe(_public("NestedLoop"), lambda at: at.of_all, tiny={"block_rows": (1, 3, 8, 64, 4096)}),
    "SortedListIndex": Recipe(_public("SortedListIndex"), lambda at: at.of_one_key),
    "BPlusTree": Recipe(_public("BPlusTree"), lambda at: at.of_one_key, tiny={"fanout": (3, 4, 5, 8)}),
    "ImmutableBPlusTree": Recipe(
        _public("ImmutableBPlusTree"), lambda at: at.of_one_key, tiny={"fanout": (2, 3, 4, 5)}
    ),
    "B-chain": Recipe(
        _public("ChainedIndex"),
        lambda at: {"window": at.window, "design": "B-chain", **at.of_one_key},
        tiny={"window": (1, 8, 40), "chain_length": (2, 3, 6), "fanout": (3, 4)},
    ),
    "IB-chain": Recipe(
        _public("ChainedIndex"),
        lambda at: {"window": at.window, "design": "IB-chain", **at.of_one_key},
        tiny={"window": (1, 8, 40), "chain_length": (2, 3, 6), "fanout": (3, 4)},
    ),
    "IMTree": Recipe(
        _public("IMTree"),
        lambda at: {"window": at.window, **at.of_one_key},
        tiny={"window": (1, 8, 40), "merge_ratio": (0.1, 0.5, 1.0), "fanout": (3, 4), "immutable_fanout": (2, 3, 4)},
    ),
    "PIMTree": Recipe(
        _public("PIMTree"),
        lambda at: {"window": at.window, **at.of_one_key},
        tiny={
            "window": (1, 8, 40),
            "merge_ratio": (0.1, 0.5, 1.0),
            "insertion_depth": (0, 1, 2, 3),
            "fanout": (3, 4),
            "immutable_fanout": (2, 3, 4),
            "merge": ("non-blocking", "blocking"),
            "at_once": (0, 1 << 15),
        },
    ),
    "LeveledTrees": Recipe(
        _public("LeveledTrees"), lambda at: at.of_one_key, tiny={"recent": (1, 5), "growth": (2, 3), "fanout": (3,)}
    ),
    "RaPTable": Recipe(
        _public("RaPTable"),
        lambda at: at.of_subwindows,
        tiny={"subwindow": (1, 3, 8, 20), "partitions": (1, 2, 3, 4), "sigma": (1.0, 1.25, 2.0)},
    ),
    "WiBPlusTree": Recipe(
        _public("WiBPlusTree"),
        lambda at: at.of_subwindows,
        tiny={"subwindow": (1, 3, 20, 100), "leaf_width": (2, 3, 4), "fanout": (4, 5, 6)},
    ),
    "BISort": Recipe(
        _public("BISort"),
        lambda at: at.of_subwindows,
        tiny={"subwindow": (1, 3, 8, 20, 50), "buffer": (0, 1, 4), "partitions": (1, 2, 3, 4)},
    ),
    "HashIndex": Recipe(_public("HashIndex"), lambda at: at.of_one_key, bands=False),
    "TieredRuns": Recipe(
        _public("TieredRuns"), lambda at: at.of_all, tiny={"tail_rows": (0, 1, 5, 12), "largest_block": (4, 64)}
    ),
    "GridIndex": Recipe(
        _public("GridIndex"),
        lambda at: {"window": at.window, **at.of_all},
        bands=False,
        tiny={"window": (1, 500), "first_look": (1, 3, 10, 50, 100)},
    ),
    "RangeTreeWindow": Recipe(
        _public("RangeTreeWindow"),
        lambda at: at.of_all,
        bands=False,
        tiny={"tail_rows": (0, 5), "cut_rows": (1, 4), "largest_block": (4, 64)},
    ),
}


def make_index(
    name: str,
    *,
    window: int,
    batch: int = 1024,
    dimensions: int = 1,
    key: int = 0,
    first_position: int = 0,
    arguments: Mapping[str, Any] | None = None,
) -> WindowIndex:
    """Make an empty index by its name; `Place` explains the other arguments.

    arguments: arguments of the index's class in place of those that suit the window.

    >>> type(make_index("LeveledTrees", window=1_000_000)).__name__
    'LeveledTrees'
    """
    if name not in CATALOGUE:
        raise ValueError(f"no index is called {name!r}; choose one of {', '.join(CATALOGUE)}")
    for what, value in (("window", window), ("batch", batch), ("dimensions", dimensions)):
        check_whole_number(name, what, value)
    return CATALOGUE[name].make(Place(window, batch, dimensions, key, first_position), **(arguments or {}))
