"""The rows of each key as chains of positions: the kernels of `key_ordinals`, which take one row after the other.

A size of 0 means that a side's window does not count per key: its rows are counted, and none expires.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indexes import kernel

NONE = -1
"""In place of a position: there is no such row."""

EXPIRED = -2
"""In place of the next row of a key: this row has expired."""


class KeyTable(NamedTuple):
    """The state of each key on one side, by the key's number."""

    counts: np.ndarray  # rows that have arrived
    expired: np.ndarray  # how many of them have expired; these are the first
    oldest: np.ndarray  # position of the first live one
    newest: np.ndarray  # position of the last row


def make_table(keys: int) -> KeyTable:
    """A table of keys without rows."""
    zeros, nothing = np.zeros(keys, np.int64), np.full(keys, NONE, np.int64)
    return KeyTable(zeros, zeros.copy(), nothing, nothing.copy())


@kernel
def number_rows(
    seqs: tuple[np.ndarray, np.ndarray],
    numbers: tuple[np.ndarray, np.ndarray],
    sizes: np.ndarray,
    slides: np.ndarray,
    expiring: np.ndarray,
    tables: tuple[KeyTable, KeyTable],
    following: tuple[np.ndarray, np.ndarray],
    bases: np.ndarray,
    live: np.ndarray,
    arrived: np.ndarray,
    done: np.ndarray,
    ordinals: tuple[np.ndarray, np.ndarray],
    lows: tuple[np.ndarray, np.ndarray],
    firsts: tuple[np.ndarray, np.ndarray],
    expired: tuple[np.ndarray, np.ndarray],
    used: np.ndarray,
) -> tuple[int, int]:
    """Number rows in the total order, from `done` on, until all are numbered or the list of expired rows is full.

    Returns the side whose list is full and the size it needs, or `NONE`. Called again, it continues at the same row.
    """
    ends = (seqs[0].size, seqs[1].size)
    while done[0] < ends[0] or done[1] < ends[1]:
        on_left = done[0] < ends[0] and (done[1] == ends[1] or seqs[0][done[0]] <= seqs[1][done[1]])
        on_right = done[1] < ends[1] and (done[0] == ends[0] or seqs[1][done[1]] <= seqs[0][done[0]])
        for role in range(2):
            if not (on_left if role == 0 else on_right):
                continue
            row = done[role]
            key = numbers[role][row]
            if key >= 0:
                for side in range(2):
                    if sizes[side]:
                        lacking = _expire(
                            side, key, seqs[role][row], sizes, slides, expiring, tables, following, bases, expired, used
                        )
                        if lacking:
                            return side, lacking
        for side in range(2):
            if sizes[side]:
                while live[side] < arrived[side] and following[side][live[side] - bases[side]] == EXPIRED:
                    live[side] += 1
        for role in range(2):
            if not (on_left if role == 0 else on_right):
                continue
            row, other = done[role], 1 - role
            key = numbers[role][row]
            firsts[role][row] = live[other]
            ordinals[role][row] = 0
            lows[role][row] = 0
            if key >= 0:
                ordinals[role][row] = tables[role].counts[key]
                if sizes[other]:
                    lows[role][row] = _first_ordinal(tables[other].counts[key], sizes[other], slides[other])
        for role in range(2):
            if not (on_left if role == 0 else on_right):
                continue
            key = numbers[role][done[role]]
            position = arrived[role]
            if key >= 0:
                tables[role].counts[key] += 1
            if sizes[role]:
                if key < 0:
                    following[role][position - bases[role]] = EXPIRED
                else:
                    following[role][position - bases[role]] = NONE
                    if tables[role].oldest[key] == NONE:
                        tables[role].oldest[key] = position
                    else:
                        following[role][tables[role].newest[key] - bases[role]] = position
                    tables[role].newest[key] = position
            arrived[role] += 1
            done[role] += 1
    for side in range(2):
        if sizes[side]:
            while live[side] < arrived[side] and following[side][live[side] - bases[side]] == EXPIRED:
                live[side] += 1
    return NONE, 0


@kernel
def _first_ordinal(count: int, size: int, slide: int) -> int:
    """The first ordinal that is live: max(0, ceil((count - size) / slide) * slide)."""
    if count <= size:
        return 0
    return (count - size + slide - 1) // slide * slide


@kernel
def _expire(
    side: int,
    key: int,
    seq: int,
    sizes: np.ndarray,
    slides: np.ndarray,
    expiring: np.ndarray,
    tables: tuple[KeyTable, KeyTable],
    following: tuple[np.ndarray, np.ndarray],
    bases: np.ndarray,
    expired: tuple[np.ndarray, np.ndarray],
    used: np.ndarray,
) -> int:
    """Remove the rows of a key that are not live at this seq from its chain; return the missing room, if any."""
    table = tables[side]
    end = min(_first_ordinal(table.counts[key], sizes[side], slides[side]), table.counts[key])
    leaving = end - table.expired[key]
    listed = expired[side]
    if expiring[side] and used[side] + leaving > listed.shape[0]:
        return used[side] + leaving
    for _ in range(leaving):
        position = table.oldest[key]
        at = position - bases[side]
        table.oldest[key] = following[side][at]
        following[side][at] = EXPIRED
        if expiring[side]:
            listed[used[side], 0] = position
            listed[used[side], 1] = seq
            used[side] += 1
    table.expired[key] = end
    return 0
