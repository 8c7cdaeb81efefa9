"""The two sides of a join: their numbers, by which everything per side is indexed, and their names."""

from __future__ import annotations

LEFT, RIGHT = 0, 1
SIDES = ("left", "right")
