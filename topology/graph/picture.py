"""Draws the graph of a topology as SVG, for a notebook: as wide as its cell at most, on a light or a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from zlib import crc32

from topology.graph.layers import Slot, lay_out

BOX_HEIGHT = 44
LEAST_WIDTH = 110
MOST_LETTERS = 30
LETTER = 7.6
"""The width of a bold letter, about."""

PADDING = 12
GAP = 26
LANE = 10
LAYER_GAP = 40
PORT = 22
"""The distance between two edges at the same box."""

MARGIN = 8
COLOURS = {"input": "#d7ecd9", "spout": "#d7ecd9", "bolt": "#dbe7f6", "sink": "#f6e7d3", "part": "#e6dcf3"}
OTHER = "#e8e8e8"
LINE = "#7d8590"
"""Halfway between white and black, so that lines show on both."""

INK = "#1b1f24"
FAINT_INK = "#424a53"


@dataclass(frozen=True)
class Box:
    """A component, or a part that is shown as one.

    kind:   what it is, in a word.
    colour: the kind of component, such as "bolt", which decides its colour.
    wishes: what each of its tasks needs.
    """

    name: str
    kind: str
    tasks: int
    colour: str
    note: str = ""
    wishes: str = ""

    @property
    def label(self) -> str:
        """Its name, and the number of its tasks if there are several."""
        return f"{self.name} x{self.tasks}" if self.tasks > 1 else self.name


@dataclass(frozen=True)
class Line:
    """A stream from one box to another, and how it gets there: by a grouping, or as the input of a part."""

    producer: str
    consumer: str
    stream: str
    how: str


def draw(name: str, boxes: Sequence[Box], lines: Sequence[Line]) -> str:
    """Return the picture; one line for all streams between two boxes, whose names show when pointed at."""
    streams: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        streams.setdefault((line.producer, line.consumer), []).append(f"{line.stream} {line.how}")
    labels = {box.name: _cut(box.label) for box in boxes}
    kinds = {box.name: _cut(box.kind) for box in boxes}
    widths = {node: _width(labels[node], kinds[node]) for node in labels}
    layout = lay_out(widths, list(streams), LANE, GAP)
    width = round(layout.width + 2 * MARGIN)
    height = len(layout.layers) * (BOX_HEIGHT + LAYER_GAP) - LAYER_GAP + 2 * MARGIN
    tip = f"tip-{crc32(repr((name, sorted(streams))).encode()):08x}"  # a page may hold several pictures
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="max-width:100%;height:auto" font-family="sans-serif" font-size="12">'
        f"<title>{escape(name)}</title>",
        f'<defs><marker id="{tip}" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" refX="8" '
        f'refY="4" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker></defs>',
    ]
    for (producer, consumer), route in layout.routes.items():
        shown = "&#10;".join(map(escape, [f"{producer} to {consumer}", *streams[producer, consumer]]))
        parts.append(
            f'<path d="{_path(route)}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#{tip})">'
            f"<title>{shown}</title></path>"
        )
    for box in boxes:
        slot = layout.boxes[box.name]
        x, y = slot.x - slot.width / 2 + MARGIN, _top(slot)
        note = f": {box.note}" if box.note else ""
        parts.append(
            f'<g><rect x="{x:g}" y="{y:g}" width="{slot.width:g}" height="{BOX_HEIGHT}" rx="6" '
            f'fill="{COLOURS.get(box.colour, OTHER)}" stroke="{LINE}"/>'
            f'<text x="{x + PADDING:g}" y="{y + 18:g}" fill="{INK}" font-weight="bold">'
            f"{escape(labels[box.name])}</text>"
            f'<text x="{x + PADDING:g}" y="{y + 34:g}" fill="{FAINT_INK}">{escape(kinds[box.name])}</text>'
            f"<title>{escape(box.name + note)}</title></g>"
        )
    return "".join([*parts, "</svg>"])


def _path(route: list[Slot]) -> str:
    """A line that leaves and enters boxes and lanes straight down, and bends only between layers."""
    x, y = _port(route[0], route[0].below, route[1]), _top(route[0]) + BOX_HEIGHT
    written = [f"M{x:g},{y:g}"]
    for before, slot in pairwise(route):
        end, top = (slot.x + MARGIN if slot.is_lane else _port(slot, slot.above, before)), _top(slot)
        middle = (y + top) / 2
        written.append(f"C{x:g},{middle:g} {end:g},{middle:g} {end:g},{top:g}")
        x, y = end, top
        if slot.is_lane:
            y += BOX_HEIGHT
            written.append(f"L{x:g},{y:g}")
    return " ".join(written)


def _port(box: Slot, others: list[Slot], other: Slot) -> float:
    """Where on a box's edge the line to one of its neighbours begins: side by side, in their order."""
    order = sorted(others, key=lambda slot: slot.x)
    apart = min(PORT, (box.width - 2 * PADDING) / max(1, len(order) - 1))
    return box.x + (order.index(other) - (len(order) - 1) / 2) * apart + MARGIN


def _top(slot: Slot) -> float:
    return MARGIN + slot.layer * (BOX_HEIGHT + LAYER_GAP)


def _width(*texts: str) -> float:
    return round(max(LEAST_WIDTH, *(len(text) * LETTER + 2 * PADDING for text in texts)))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
