"""What the picture of a plan shows."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def edges_behind_boxes(svg: str) -> list[str]:
    """The edges of a picture that run behind a box somewhere; raises if it has none at all."""
    picture = ElementTree.fromstring(svg)
    boxes = [[float(box.get(name, "")) for name in ("x", "y", "width", "height")] for box in picture.iter(f"{SVG}rect")]
    edges = [path.get("d", "") for path in picture.iter(f"{SVG}path") if path.get("marker-end")]
    assert edges
    return [
        edge
        for edge in edges
        if any(
            left < x < left + width and top < y < top + height
            for x, y in points(edge)
            for left, top, width, height in boxes
        )
    ]


def points(path: str) -> list[tuple[float, float]]:
    """Points along a path of cubic curves and straight lines."""
    numbers = [[float(part) for part in re.split("[ ,]", each.strip())] for each in re.split("[MCL]", path)[1:]]
    found = [(numbers[0][0], numbers[0][1])]
    for each in numbers[1:]:
        ends = [found[-1], *zip(each[::2], each[1::2], strict=True)]
        for step in range(1, 21):
            at = step / 20
            weights = (
                [(1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3] if len(ends) == 4 else [1 - at, at]
            )
            x, y = (sum(weight * end[axis] for weight, end in zip(weights, ends, strict=True)) for axis in (0, 1))
            found.append((x, y))
    return found
