"""Where results spend their time: the way on which they come latest, hop by hop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interlace.watching.load import Load
from interlace.watching.verdict import duration
from topology import Topology

LEAST_SECONDS = 1e-3
"""A shorter way is not worth a sentence."""


@dataclass(frozen=True)
class Hop:
    """From the arrival at one component to the arrival at the next: its work, the edge, and the wait in the queue.

    seconds: the difference of the median ages of rows at both.
    """

    producer: str
    consumer: str
    seconds: float


def critical_path(topology: Topology, components: Mapping[str, Load]) -> list[Hop]:
    """The hops from an entry to the sink whose results are oldest; empty without results that somebody has to read.

    It goes upstream from the sink, each time to the producer at which rows arrived last: for that one the consumer
    waited, so whatever came before on other ways cost nothing. Of equals it takes the one that is further downstream.
    """
    read = [name for name in topology.sinks if not getattr(topology.node(name).component, "aside", False)]
    aged = {name: age for name in read if (age := _age(components, name)) is not None}
    place = {node.name: number for number, node in enumerate(topology.nodes)}
    hops: list[Hop] = []
    at = max(aged, key=lambda name: aged[name], default=None)
    while at is not None and (producers := topology.producers(at)):
        before = max(producers, key=lambda name: (_age(components, name) or 0.0, place[name]))
        hops.append(Hop(before, at, max(0.0, (_age(components, at) or 0.0) - (_age(components, before) or 0.0))))
        at = before
    return hops[::-1]


def traced(hops: Sequence[Hop]) -> str:
    """The way in a sentence that names where most of the time goes."""
    total = sum(hop.seconds for hop in hops)
    if total < LEAST_SECONDS:
        return ""
    longest = max(hops, key=lambda hop: hop.seconds)
    age, most = _length(total), _length(longest.seconds)
    place = f"between '{longest.producer}' and '{longest.consumer}'"
    return f"Half of the results are at least {age} old when they come; {most} of that pass {place}."


def _age(components: Mapping[str, Load], name: str) -> float | None:
    """The median age of rows that arrived at a component; None if none did."""
    load = components.get(name)
    (median,) = (math.nan,) if load is None else load.ages.percentiles(50)
    return None if math.isnan(median) else median


def _length(seconds: float) -> str:
    return (
        f"{seconds * 1000:.2g} ms"
        if seconds < 0.1
        else f"{seconds * 1000:.0f} ms"
        if seconds < 1
        else duration(seconds)
    )
