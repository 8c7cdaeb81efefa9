"""The two sides of a join."""

from __future__ import annotations

LEFT, RIGHT = 0, 1
SIDES = ("left", "right")
