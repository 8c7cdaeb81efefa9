"""How the user wants tasks to be placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from topology.graph.errors import TopologyError

Strategy = Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]


@dataclass(frozen=True)
class Workers:
    """A number of worker processes, and how they are spread over the nodes.

    count:    the number of workers; None: as many as the default placement has.
    strategy: "SPREAD": on different nodes where possible; "PACK": on few nodes; "STRICT_SPREAD" and "STRICT_PACK": wait
              until each worker has a node of its own, or until one node has room for all.
    """

    count: int | None = None
    strategy: Strategy = "SPREAD"

    def __post_init__(self) -> None:
        count: object = self.count
        if count is not None and (type(count) is not int or count < 1):
            raise TopologyError(f"Workers: count must be a whole number of 1 or more, not {count!r}")
        if self.strategy not in get_args(Strategy):
            raise TopologyError(
                f"Workers: strategy must be one of {', '.join(get_args(Strategy))}, not {self.strategy!r}"
            )


Wish = Literal["default", "per-task"] | Workers
"""`"default"`: cheap and chatty tasks together, all others in workers of their own. `"per-task"`: a worker per task."""
