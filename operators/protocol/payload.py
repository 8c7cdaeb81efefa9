"""The columns that the router adds to a side's payload for the collector. Users' columns never start with '#'."""

from __future__ import annotations

EXPIRED_BELOW = ("#expired.left", "#expired.right")
"""For each side: its rows below this position have expired when the row that carries it arrives."""

HIDDEN = "#hidden"
"""Whether a row fails the join's `where`: it must not come out as unmatched or counted."""
