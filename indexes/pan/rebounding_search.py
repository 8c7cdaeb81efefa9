"""Search ascending targets in a sorted array, each from where the one before it ended.

The rebounding binary search of PanJoin (section III-E): forward in doubling strides to a key that is not below the
target, then backward in halving strides. A target d keys ahead takes O(log d) comparisons, however large the array.

    keys    2 3 5 8 9 12 15 17 20 21       target 17, known not to lie before rank 1
    forward   3 -> 5 -> 9 -> 17            strides 1, 2, 4: 17 is not below the target
    back              12 -> 15             half of 4, half of 2: rank 7

Each such search waits for the one before it and mispredicts where it turns. So where there are many targets, a whole
group is searched together. The forward phase follows only the group's last target, because the others lie before it.
The backward phase then advances the whole group in lockstep, without a branch.
"""

from __future__ import annotations

import numpy as np

from indexes.kernels.compiled import kernel

GROUP = 16
"""Targets that are searched together: enough to hide each other's memory latency."""


@kernel
def rebound(keys: np.ndarray, begin: int, end: int, target: int, closed: bool) -> int:
    """The first rank in [begin, end) whose key is not < target, or not <= if closed; `end` if there is none."""
    at = begin
    step = 1
    while at + step <= end:
        key = keys[np.uint64(at + step - 1)]
        if not (key < target or (closed and key == target)):
            break
        at += step
        step <<= 1
    step >>= 1
    while step > 0:
        if at + step <= end:
            key = keys[np.uint64(at + step - 1)]
            at += step * ((key < target) | (closed & (key == target)))
        step >>= 1
    return at


@kernel
def rebound_group(
    keys: np.ndarray,
    begin: int,
    end: int,
    targets: np.ndarray,
    start: int,
    group: int,
    found: np.ndarray,
) -> None:
    """found[k] = as `rebound`, not closed, for targets[start + k] and k < group; targets ascend, 1 <= group <= GROUP.

    All of `found` is written: elements beyond the group repeat its last target.
    """
    sought = np.empty(GROUP, np.int64)
    for k in range(GROUP):
        found[k] = begin
        sought[k] = targets[np.uint64(start + min(k, group - 1))]
    if begin >= end:
        return
    last = sought[GROUP - 1]
    step = 1
    while begin + step <= end and keys[np.uint64(begin + step - 1)] < last:
        step <<= 1
    span = min(step - 1, end - begin)
    while span > 1:
        half = span >> 1
        for k in range(GROUP):
            found[k] += half * (keys[found[k] + half - 1] < sought[k])
        span -= half
    if span == 1:
        for k in range(GROUP):
            found[k] += keys[found[k]] < sought[k]
