"""Stream identifiers: the kind of message that a stream carries and, for some kinds, its side and dimension.

A topology knows streams by plain names. Components of a join use a `StreamId`: its `name` goes into the topology, and
`stream_of` gives the identifier back for the name on a batch. A name is parsed once per process; after that it costs
one dictionary lookup per batch.

    StreamId(JoinStream.PROBES, LEFT).name             "probes.left"
    StreamId(JoinStream.PROBES, LEFT, dimension=2)     "probes.left.2"
    stream_of("probes.left.2").side                    LEFT
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

import pyarrow as pa

from operators.protocol.sides import LEFT, RIGHT, SIDES

_KINDS: dict[str, StreamKind] = {}


class StreamKind(Enum):
    """The kinds of streams that one group of elements uses; each group subclasses this with its own members.

    A member's value is the first part of its streams' names. No two kinds share it, whichever group they belong to.
    """

    def __init__(self, label: str) -> None:
        assert label not in _KINDS, f"two kinds of streams are called {label!r}"
        _KINDS[label] = self


@dataclass(frozen=True, slots=True)
class StreamId:
    """One stream of a component.

    of:        the side that the messages belong to; None where the kind has no sides.
    dimension: the one dimension that the messages are about; None: all of them.
    name:      the stream's name in the topology.
    """

    kind: StreamKind
    of: int | None = None
    dimension: int | None = None
    name: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        parts = [self.kind.value]
        if self.of is not None:
            parts.append(SIDES[self.of])
        if self.dimension is not None:
            parts.append(str(self.dimension))
        object.__setattr__(self, "name", ".".join(parts))

    @property
    def side(self) -> int:
        """The side of a stream whose kind has sides."""
        assert self.of is not None, f"{self.name} belongs to no side"
        return self.of


def both_sides(kind: StreamKind) -> tuple[StreamId, StreamId]:
    """The streams of a kind that has sides, by side."""
    return StreamId(kind, LEFT), StreamId(kind, RIGHT)


@cache
def stream_of(name: str) -> StreamId:
    """The identifier of a stream by its name in the topology. Cost: O(1), a lookup after the first time."""
    label, *rest = name.split(".")
    side = SIDES.index(rest[0]) if rest else None
    dimension = int(rest[1]) if len(rest) > 1 else None
    return StreamId(_KINDS[label], side, dimension)


def outputs_of(streams: Iterable[StreamId]) -> dict[str, pa.Schema | None]:
    """Streams as a component declares its outputs; their schemas follow from the query's types."""
    return {stream.name: None for stream in streams}
