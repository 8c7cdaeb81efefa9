"""How strictly results are ordered, as the user chooses: from "strict" to "none". The multiset never changes.

A result belongs to its later row. Let `seq` be the later row's number in the total order (docs/semantics.md).

- "strict":  by `seq`, then by the earlier row's (in a self-join, of the two directions of a pair the one with the later
             row on the left first). SplitJoin's strict inner order.
- "outer":   by `seq`; the results of one row come in any order. The paper's outer order.
- EveryK(k): results whose `seq` lie in different groups [0, k), [k, 2k), ... come in the order of the groups; inside a
             group in any order. The paper's punctuation after every k tuples. EveryK(1) promises what "outer" does.
- "none":    any order; the paper's punctuation switched off.

The weaker the promise, the less a fast element waits for a slow one. Paper: "SplitJoin: A Scalable, Low-latency
Stream Join Architecture with Adjustable Ordering Precision", section 5.1. There a core lowers the precision by
punctuating less often. Here the punctuation stays, since it also bounds memory and marks a reader's progress; instead,
the merging task waits for less of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from indexes import check_whole_number
from operators.query.errors import JoinError

NEVER_REACHED = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class EveryK:
    """Groups of `k` consecutive sequence numbers come in order; inside a group, any order."""

    k: int

    def __post_init__(self) -> None:
        check_whole_number("EveryK", "k", self.k, error=JoinError)

    def __str__(self) -> str:
        return f"every {self.k:,}"


Ordering: TypeAlias = Literal["strict", "outer", "none"] | EveryK


def ordering_of(value: Ordering | int) -> Ordering:
    """Check an ordering given by a user; a whole number k means EveryK(k)."""
    if isinstance(value, EveryK):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return EveryK(value)
    if value == "strict" or value == "outer" or value == "none":
        return value
    raise JoinError(f"ordering must be 'strict', 'outer', 'none' or a whole number k of 1 or more, not {value!r}")


def is_aligned(ordering: Ordering) -> bool:
    """Whether a result may only be emitted once every element has answered."""
    return ordering in ("strict", "outer")


def open_until(ordering: Ordering, complete: int) -> int:
    """The last sequence number whose results may be emitted as they are found, once all up to `complete` are emitted.

    Let complete be 6. Strict and outer: 6, so all elements must answer row 7 before any of its results is emitted.
    EveryK(5): 9, because row 7 is in the group 5 to 9. None: no limit.
    """
    if isinstance(ordering, EveryK):
        return ((complete + 1) // ordering.k + 1) * ordering.k - 1
    return NEVER_REACHED if ordering == "none" else complete
