r"""Places the boxes of a graph in layers, from top to bottom, so that no edge runs behind a box.

A box stands one layer below the lowest of its producers. An edge that spans several layers gets a *lane* in each layer
between, as if it were a narrow box (Sugiyama's method): so boxes make room for it. Within a layer, boxes and lanes are
ordered by where their neighbours are, which avoids most crossings, and then moved as near to them as the others allow.

    R    S          layer 0
     \  /
     gate           layer 1
     /  \
 router  |          layer 2: the bar is the lane of gate -> join
     \  |
      join          layer 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 8


@dataclass(eq=False)
class Slot:
    """A box, or the lane of an edge in one layer; `x` is its middle."""

    name: str
    width: float
    layer: int
    is_lane: bool = False
    above: list[Slot] = field(default_factory=list)
    below: list[Slot] = field(default_factory=list)
    x: float = 0.0


@dataclass(frozen=True)
class Layout:
    """Where everything is.

    layers: from top to bottom, each from left to right.
    routes: for each edge its slots, from its producer's box over its lanes to its consumer's box.
    width:  all slots lie between 0 and this.
    """

    layers: list[list[Slot]]
    routes: dict[tuple[str, str], list[Slot]]
    width: float

    @property
    def boxes(self) -> dict[str, Slot]:
        """The boxes by name."""
        return {slot.name: slot for layer in self.layers for slot in layer if not slot.is_lane}


def lay_out(widths: Mapping[str, float], edges: Sequence[tuple[str, str]], lane: float, gap: float) -> Layout:
    """Place boxes of these widths, of which producers come before their consumers; an edge appears once.

    lane: the width of a lane.
    gap:  the least distance between two boxes or lanes of a layer.
    """
    depth: dict[str, int] = {}
    for name in widths:
        depth[name] = max((depth[producer] + 1 for producer, consumer in edges if consumer == name), default=0)
    boxes = {name: Slot(name, width, depth[name]) for name, width in widths.items()}
    layers: list[list[Slot]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for slot in boxes.values():
        layers[slot.layer].append(slot)
    routes = {}
    for producer, consumer in edges:
        route = [boxes[producer]]
        for layer in range(depth[producer] + 1, depth[consumer]):
            route.append(Slot(f"{producer} -> {consumer}", lane, layer, is_lane=True))
            layers[layer].append(route[-1])
        route.append(boxes[consumer])
        for upper, lower in pairwise(route):
            upper.below.append(lower)
            lower.above.append(upper)
        routes[producer, consumer] = route
    _order(layers)
    width = _place(layers, gap)
    return Layout(layers, routes, width)


def _order(layers: list[list[Slot]]) -> None:
    """Order each layer by the mean place of its neighbours, in turns from above and from below; keep the best order."""
    best = [list(layer) for layer in layers]
    fewest = _crossings(layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            place = {id(slot): number for each in layers for number, slot in enumerate(each)}
            means = {}
            for slot in layer:
                around = [place[id(other)] for other in (slot.above if down else slot.below)]
                means[id(slot)] = sum(around) / len(around) if around else float(place[id(slot)])
            layer.sort(key=lambda slot: means[id(slot)])
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _crossings(layers: list[list[Slot]]) -> int:
    """The number of pairs of edges between two layers that cross."""
    found = 0
    for upper, lower in pairwise(layers):
        place = {id(slot): number for number, slot in enumerate(lower)}
        ends = [(number, place[id(below)]) for number, slot in enumerate(upper) for below in slot.below]
        found += sum(one[0] < other[0] and one[1] > other[1] for one in ends for other in ends)
    return found


def _place(layers: list[list[Slot]], gap: float) -> float:
    """Move every slot as near to the mean of its neighbours as the order and the gaps allow; return the width."""
    for layer in layers:
        _spread(layer, [0.0] * len(layer), gap)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wanted = []
            for slot in layer:
                around = slot.above if down else slot.below
                wanted.append(sum(other.x for other in around) / len(around) if around else slot.x)
            _spread(layer, wanted, gap)
    slots = [slot for layer in layers for slot in layer]
    first = min(slot.x - slot.width / 2 for slot in slots)
    for slot in slots:
        slot.x -= first
    return max(slot.x + slot.width / 2 for slot in slots)


def _spread(layer: list[Slot], wanted: list[float], gap: float) -> None:
    """Set the places that differ least (in squares) from those wanted, in order and at least a gap apart.

    Less the room that all slots to the left need, wanted places must not fall: neighbours that do share their mean.
    """
    room, groups = 0.0, []
    rooms = []
    for number, slot in enumerate(layer):
        if number:
            room += layer[number - 1].width / 2 + gap + slot.width / 2
        rooms.append(room)
        groups.append((wanted[number] - room, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (right, many), (left, few) = groups.pop(), groups.pop()
            groups.append(((left * few + right * many) / (few + many), few + many))
    places = [place for place, count in groups for _ in range(count)]
    for slot, place, needed in zip(layer, places, rooms, strict=True):
        slot.x = place + needed
