"""Chooses, for each left row, the next or the nearest right row of its key in event time: the kernel.

It goes through the rows of both sides in the total order once. For each key it knows the last right row, and for each
left row whose choice is not certain yet a *record*. A record waits for two things: for right rows of its key, and for
the time up to which a better one may come, its *limit*. When a row with a time beyond the limit comes, the choice is
certain. A heap holds the records by limit; those that wait for any time are not in it. A list for each key holds the
records that right rows may still change.

    key a, nearest          left    a4      a8         right   a3  a6  a9
    total order             a3 a4 b5 a6 a8 a9          a4 has a3, one away: it is certain at a6, the first row after 5;
                                                       a8 has a6, two away, and takes a9 when it comes

Distances are kept as negative numbers: int64 has one more of these. So the difference of any two times is exact,
or so far beyond every tolerance and every other distance that only its sign matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from indexes import kernel
from operators.as_of.rows import HIDDEN, NONE, Int64, Times, earliest_within, none

Bool = npt.NDArray[np.bool_]

FORWARD, NEAREST = 1, 2


class Known(NamedTuple):
    """What is known of each key.

    last, last_time:     its last right row. A row that nothing needs any more is NONE.
    first_of_time:       the first right row of that time.
    before, before_time: the last right row before that time.
    head, tail:          the first and the last record in its list.
    """

    last: Int64
    last_time: Times
    first_of_time: Int64
    before: Int64
    before_time: Times
    head: Int64
    tail: Int64

    @classmethod
    def empty(cls, size: int, kind: npt.DTypeLike) -> Known:
        return cls(none(size), none(size, kind), none(size), none(size), none(size, kind), none(size), none(size))


class Records(NamedTuple):
    """Left rows whose choice may not be certain, in the order of the left rows.

    right, right_time: the best right row so far.
    limit:             the choice is certain when a later time comes.
    following:         the next record in the list of the key.
    """

    left: Int64
    time: Times
    key: Int64
    right: Int64
    right_time: Times
    limit: Times
    following: Int64
    certain: Bool

    @classmethod
    def empty(cls, size: int, kind: npt.DTypeLike) -> Records:
        return cls(
            none(size), none(size, kind), none(size), none(size), none(size, kind), none(size, kind),
            none(size), np.ones(size, np.bool_),
        )  # fmt: skip


class Heap(NamedTuple):
    """Records by limit, the least first. A record whose limit has fallen has a second entry."""

    limits: Times
    records: Int64

    @classmethod
    def empty(cls, size: int, kind: npt.DTypeLike) -> Heap:
        return cls(none(size, kind), none(size))


@kernel
def choose(  # type: ignore[no-untyped-def]
    left, right, known, records, used, heap, heaped, direction, strict, tolerance, lowest, highest, found, places
):
    """Take a step. Return the records and the heap entries in use, and how many records became certain.

    used, heaped:    how many records and heap entries are in use; there is room for all left rows of the step.
    tolerance:       as a negative distance; `lowest`: none.
    lowest, highest: the least and the greatest time.
    found:           receives the records that become certain, in the order of the results.
    places:          receives the time at which each of them does.
    """
    # Named once: each access to a part of a tuple in the loop would count references.
    left_seqs, left_times, left_keys = left.seqs, left.times, left.keys
    right_seqs, right_times, right_keys = right.seqs, right.times, right.keys
    last, last_time, first_of_time = known.last, known.last_time, known.first_of_time
    before, before_time, head = known.before, known.before_time, known.head
    limits, certain = heap.limits, records.certain
    at_left = at_right = count = 0
    while at_left < len(left_seqs) or at_right < len(right_seqs):
        is_left = at_right == len(right_seqs) or (
            at_left < len(left_seqs) and left_seqs[at_left] < right_seqs[at_right]
        )
        time = left_times[at_left] if is_left else right_times[at_right]
        begin = count
        while heaped > 0 and limits[0] < time:
            record = heap.records[0]
            heaped = _pop(heap, heaped)
            if not certain[record]:
                certain[record] = True
                found[count], places[count] = record, time
                count += 1
        if is_left:
            key = left_keys[at_left]
            if key != HIDDEN:
                records.left[used] = left.first + at_left
                _begin(used, time, key, known, records, direction, strict, tolerance, lowest, highest)
                if certain[used]:
                    found[count], places[count] = used, time
                    count += 1
                elif records.limit[used] < highest:
                    heaped = _push(heap, heaped, used, records.limit[used])
                used += 1
            at_left += 1
        else:
            key = right_keys[at_right]
            if key >= 0:
                row = right.first + at_right
                if head[key] != NONE:
                    count, heaped = _offer(
                        row, time, key, known, records, direction, strict, tolerance, lowest, highest,
                        found, places, count, heap, heaped,
                    )  # fmt: skip
                is_first = last[key] == NONE and first_of_time[key] == NONE
                if is_first or time != last_time[key]:
                    before[key] = last[key]
                    before_time[key] = last_time[key]
                    first_of_time[key] = row
                last[key] = row
                last_time[key] = time
            at_right += 1
        if count - begin > 1:
            found[begin:count] = np.sort(found[begin:count])
    return used, heaped, count


@kernel
def _begin(record, time, key, known, records, direction, strict, tolerance, lowest, highest):  # type: ignore[no-untyped-def]
    """Begin a record with what is known of its key."""
    records.time[record] = time
    records.key[record] = key
    records.right[record] = NONE
    records.right_time[record] = time
    records.following[record] = NONE
    records.certain[record] = False
    records.limit[record] = time
    if key == NONE:
        return
    if direction == NEAREST:
        row, row_time = known.last[key], known.last_time[key]
        if strict and row != NONE and row_time == time:
            row, row_time = known.before[key], known.before_time[key]
        if row != NONE and row_time >= earliest_within(time, tolerance, lowest):
            records.right[record] = row
            records.right_time[record] = row_time
    elif not strict and known.first_of_time[key] != NONE and known.last_time[key] == time:
        records.right[record] = known.first_of_time[key]
        records.certain[record] = True
        return
    if records.right[record] == NONE:
        records.limit[record] = _latest(time, tolerance, lowest, highest)
    elif records.right_time[record] != time:
        away = _away(records.right_time[record], time, lowest)
        records.limit[record] = _latest(time, away, lowest, highest)
    _link(record, key, known, records)


@kernel
def leave_out_certain(known, records, used, heap, highest):  # type: ignore[no-untyped-def]
    """Keep the records that wait, in their order; return how many, and the size of the heap."""
    known.head[:] = NONE
    known.tail[:] = NONE
    kept = heaped = 0
    for record in range(used):
        if records.certain[record]:
            continue
        for array in (records.left, records.key, records.right):
            array[kept] = array[record]
        for times in (records.time, records.right_time, records.limit):
            times[kept] = times[record]
        records.certain[kept] = False
        records.following[kept] = NONE
        if records.key[kept] != NONE:
            _link(kept, records.key[kept], known, records)
        if records.limit[kept] < highest:
            heaped = _push(heap, heaped, kept, records.limit[kept])
        kept += 1
    return kept, heaped


@kernel
def _link(record, key, known, records):  # type: ignore[no-untyped-def]
    """Put a record at the end of its key's list."""
    if known.head[key] == NONE:
        known.head[key] = record
    else:
        records.following[known.tail[key]] = record
    known.tail[key] = record


@kernel
def _offer(  # type: ignore[no-untyped-def]
    row, time, key, known, records, direction, strict, tolerance, lowest, highest, found, places, count, heap, heaped
):
    """Offer a right row to the records of its key, and take those that are certain off the key's list."""
    previous = NONE
    record = known.head[key]
    while record != NONE:
        own = records.time[record]
        if not records.certain[record]:
            if time == own:
                if not strict:
                    records.right[record] = row
                    records.right_time[record] = time
                    records.certain[record] = direction == FORWARD
                    if direction == NEAREST and records.limit[record] != own:
                        # nothing is nearer; the record's first entry in the heap comes later, and is passed over
                        records.limit[record] = own
                        if own < highest:
                            heaped = _push(heap, heaped, record, own)
            elif time <= _latest(own, tolerance, lowest, highest):
                best = records.right_time[record]
                if records.right[record] == NONE or (
                    best != own and _away(own, time, lowest) > _away(best, own, lowest)
                ):
                    records.right[record] = row
                    records.right_time[record] = time
                    records.certain[record] = True
            if records.certain[record]:
                found[count], places[count] = record, time
                count += 1
        following = records.following[record]
        if not records.certain[record]:
            previous = record
        elif previous == NONE:
            known.head[key] = following
        else:
            records.following[previous] = following
        record = following
    known.tail[key] = previous
    return count, heaped


@kernel
def _away(earlier, later, lowest):  # type: ignore[no-untyped-def]
    """The distance of two different times as a negative number; `lowest` where it does not fit."""
    # Compiled code may assume that nothing overflows, so it is asked beforehand.
    return lowest if later > 0 and earlier < lowest + later else earlier - later


@kernel
def _latest(time, away, lowest, highest):  # type: ignore[no-untyped-def]
    """The time that is so far behind another."""
    if away == lowest:
        return highest
    return highest if time > highest + away else time - away


@kernel
def _push(heap, size, record, limit):  # type: ignore[no-untyped-def]
    """Add an entry to the heap; return its size."""
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if heap.limits[parent] <= limit:
            break
        heap.limits[at], heap.records[at] = heap.limits[parent], heap.records[parent]
        at = parent
    heap.limits[at], heap.records[at] = limit, record
    return size + 1


@kernel
def _pop(heap, size):  # type: ignore[no-untyped-def]
    """Remove the first entry of the heap; return its size."""
    size -= 1
    limit, record = heap.limits[size], heap.records[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap.limits[child + 1] < heap.limits[child]:
            child += 1
        if limit <= heap.limits[child]:
            break
        heap.limits[at], heap.records[at] = heap.limits[child], heap.records[child]
        at = child
    heap.limits[at], heap.records[at] = limit, record
    return size
