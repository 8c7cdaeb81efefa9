"""The order in which the windows of the other streams are probed, from samples of what their links leave.

A row of one stream meets the windows of the others one after the other. Each window multiplies the number of
combinations by what its links to the streams before leave of it. The best order is that with the fewest combinations
over all steps. It changes how much work a result takes, and never the results.

    a arrives; b has 1,000 live rows, c 1,000; a-b leaves 0.5 of b, a-c leaves 0.001 of c, b-c leaves 0.01 of either
      b then c: 500 + 500 * 1,000 * 0.001 * 0.01 = 505       c then b: 1 + 1 * 1,000 * 0.5 * 0.01 = 6: the better
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np

from indexes import Keys
from operators.bounds.bound_dimension import BoundDimension
from operators.engines.shared.selectivity import shares_of
from operators.multiway.role_window import RoleWindow
from operators.query.multi_condition import Link

SAMPLE = 256
MOST_COMPARED = 6
"""Up to so many other streams, all orders are compared; beyond, the next stream is the one that leaves the fewest."""

LEAST_SHARE = 1e-7
"""A sample that finds nothing says no more than this."""


def observed_shares(
    links: Sequence[Link], bound: Sequence[BoundDimension], roles: Sequence[RoleWindow]
) -> dict[int, float]:
    """For each link the share of the rows at its right end that a row at its left end meets, from rows that are live.

    Cost: O(SAMPLE^2) per link.
    """
    shares = {}
    for number, (link, dimension) in enumerate(zip(links, bound, strict=True)):
        left, right = (_sampled(roles[role], number) for role in link.roles)
        (share,) = shares_of([right], [dimension.intervals(0, left)]) if len(left) and len(right) else (1.0,)
        shares[number] = max(share, LEAST_SHARE)
    return shares


def best_order(latest: int, links: Sequence[Link], shares: Mapping[int, float], live: Sequence[int]) -> tuple[int, ...]:
    """The order of the other roles for rows of `latest`. Cost: that of all orders of up to `MOST_COMPARED` roles."""
    others = [role for role in range(len(live)) if role != latest]
    if len(others) <= MOST_COMPARED:
        return min(permutations(others), key=lambda order: _combinations(latest, order, links, shares, live))
    order: list[int] = []
    while others:
        nearest = min(others, key=lambda role: fan_out({latest, *order}, role, links, shares, live))
        others.remove(nearest)
        order.append(nearest)
    return tuple(order)


def fan_out(
    bound: set[int], role: int, links: Sequence[Link], shares: Mapping[int, float], live: Sequence[int]
) -> float:
    """How many rows of a role a combination of other roles meets, about; links are taken to be independent."""
    found = float(max(live[role], 1))
    for number, link in enumerate(links):
        if role in link.roles and link.other(role) in bound:
            found *= shares[number]
    return found


def _combinations(
    latest: int, order: tuple[int, ...], links: Sequence[Link], shares: Mapping[int, float], live: Sequence[int]
) -> float:
    total, width, bound = 0.0, 1.0, {latest}
    for role in order:
        width *= fan_out(bound, role, links, shares, live)
        total += width
        bound.add(role)
    return total


def _sampled(role: RoleWindow, link: int) -> Keys:
    """Keys of some live rows, spread evenly."""
    positions = np.unique(np.linspace(role.base, max(role.base, role.end - 1), min(SAMPLE, role.live)).astype(np.int64))
    return role.keys(link, positions)
