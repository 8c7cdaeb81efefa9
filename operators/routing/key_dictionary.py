"""Numbers for values that are compared for equality: 0, 1, 2, ... in the order of first appearance.

Two values get the same number if and only if they are equal: hashes only say where to look. Nothing is ever forgotten.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from indexes import frozen, kernel

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

MOST_PLACES = 1 << 16
"""Places of a table that stays in the second-level cache."""

FEWEST = 16
"""Entries for which there is always room; a power of two."""


class WordDictionary:
    """Numbers for rows of a fixed number of 64-bit words.

    Cost: O(words) for a row. Memory: 8 bytes for each word of a distinct row and 16 to 32 bytes for its slot, times up
    to 2 after growth.
    """

    def __init__(self, words: int) -> None:
        self._entries = np.empty((FEWEST, words), np.int64)
        self._slots = np.full(2 * FEWEST, -1, np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._entries.nbytes + self._slots.nbytes

    def numbers(self, rows: Int64, valid: Bool) -> Int64:
        """The number of each row of `rows` (rows x words), new ones included; -1 where it is not valid."""
        found = np.empty(len(rows), np.int64)
        done = 0
        while True:
            done, self._size = _number_words(rows, valid, done, self._entries, self._slots, self._size, found)
            if done == len(rows):
                return found
            self._entries = np.concatenate([self._entries, np.empty_like(self._entries)])
            self._slots = np.full(2 * len(self._entries), -1, np.int64)
            _place_words(self._entries, self._slots, self._size)

    def check_invariants(self) -> None:
        """Every entry is found at its own number, and at most half of the slots are taken."""
        kept = self._entries[: self._size].copy()
        assert (self.numbers(kept, np.ones(len(kept), np.bool_)) == np.arange(len(kept))).all()
        assert (self._slots >= 0).sum() == self._size <= len(self._slots) // 2


class NearbyWords:
    """Remembers the numbers of words that lie close together, so that looking one up takes no hash.

    It knows what it has been told. One word far from the others ends that: it knows nothing from then on.

        told: 1004 has number 0, 1001 has 1      places from 1001 on: 1 - - 0

    Cost: O(1) for a word. Memory: 8 bytes for each place from the least to the greatest word, `MOST_PLACES` at most.
    """

    def __init__(self) -> None:
        self._low = 0
        self._places = np.empty(0, np.int64)
        self.gives_up = False

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._places.nbytes

    def numbers(self, words: Int64) -> Int64:
        """The number of each word, -1 where it is not known."""
        found = np.empty(len(words), np.int64)
        _look_up(frozen(words), self._low, self._places, found)
        return found

    def tell(self, words: Int64, numbers: Int64) -> None:
        """Give these words these numbers; there is at least one word."""
        low, high = int(words.min()), int(words.max())
        if len(self._places):
            low, high = min(low, self._low), max(high, self._low + len(self._places) - 1)
        if high - low >= MOST_PLACES:
            self._places, self.gives_up = np.empty(0, np.int64), True
            return
        if high - low >= len(self._places) or low < self._low:
            wider = np.full(high - low + 1, -1, np.int64)
            wider[self._low - low :][: len(self._places)] = self._places
            self._low, self._places = low, wider
        self._places[words - self._low] = numbers


class ByteDictionary:
    """Numbers for strings of bytes.

    Cost: O(bytes). Memory: the bytes of distinct strings and 32 to 48 bytes for each, times up to 2 after growth.
    """

    def __init__(self) -> None:
        self._data = np.empty(16 * FEWEST, np.uint8)
        self._ends = np.zeros(FEWEST + 1, np.int64)  # entry i lies in data[ends[i] : ends[i + 1]]
        self._hashes = np.empty(FEWEST, np.uint64)
        self._slots = np.full(2 * FEWEST, -1, np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._data.nbytes + self._ends.nbytes + self._hashes.nbytes + self._slots.nbytes

    def numbers(self, data: Bytes, offsets: Int64, valid: Bool) -> Int64:
        """The number of each string data[offsets[i] : offsets[i + 1]], new ones included; -1 where it is not valid."""
        found = np.empty(len(valid), np.int64)
        done = 0
        while True:
            done, self._size = _number_bytes(
                data, offsets, valid, done, self._data, self._ends, self._hashes, self._slots, self._size, found
            )
            if done == len(valid):
                return found
            self._grow(int(offsets[done + 1] - offsets[done]))

    def check_invariants(self) -> None:
        """Every entry is found at its own number, and at most half of the slots are taken."""
        kept = self._ends[: self._size + 1].copy()
        assert (self.numbers(self._data.copy(), kept, np.ones(self._size, np.bool_)) == np.arange(self._size)).all()
        assert (self._slots >= 0).sum() == self._size <= len(self._slots) // 2

    def _grow(self, length: int) -> None:
        """Make room for a string of this length."""
        used = self._ends[self._size]
        if used + length > len(self._data):
            larger = np.empty(max(2 * len(self._data), used + length), np.uint8)
            larger[:used] = self._data[:used]
            self._data = larger
        if self._size == len(self._hashes):
            self._ends = np.concatenate([self._ends, np.zeros(self._size, np.int64)])
            self._hashes = np.concatenate([self._hashes, np.empty_like(self._hashes)])
            self._slots = np.full(2 * len(self._hashes), -1, np.int64)
            _place_hashes(self._hashes, self._slots, self._size)


@kernel
def _mixed(value: np.uint64) -> np.uint64:
    """Spread the bits over all of the word (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def _hash_words(rows: np.ndarray, row: int) -> np.uint64:
    mixed = np.uint64(0)
    for word in range(rows.shape[1]):
        mixed = _mixed(mixed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(rows[row, word]))
    return mixed


@kernel
def _number_words(
    rows: np.ndarray,
    valid: np.ndarray,
    start: int,
    entries: np.ndarray,
    slots: np.ndarray,
    size: int,
    found: np.ndarray,
) -> tuple[int, int]:
    """Number rows from `start` on until all are done or the table is full; return where it stopped, and the entries."""
    words = rows.shape[1]
    mask = slots.size - 1
    for row in range(start, rows.shape[0]):
        if not valid[row]:
            found[row] = -1
            continue
        slot = np.int64(_hash_words(rows, row) & np.uint64(mask))
        while True:
            entry = slots[slot]
            if entry < 0:
                if size == entries.shape[0]:
                    return row, size
                for word in range(words):
                    entries[size, word] = rows[row, word]
                slots[slot] = size
                entry = size
                size += 1
                break
            same = True
            for word in range(words):
                same &= entries[entry, word] == rows[row, word]
            if same:
                break
            slot = (slot + 1) & mask
        found[row] = entry
    return rows.shape[0], size


@kernel
def _look_up(words: np.ndarray, low: int, places: np.ndarray, found: np.ndarray) -> None:
    high = low + places.size - 1
    for row in range(words.size):
        word = words[row]
        found[row] = places[word - low] if word >= low and word <= high else -1


@kernel
def _place_words(entries: np.ndarray, slots: np.ndarray, size: int) -> None:
    mask = slots.size - 1
    for entry in range(size):
        slot = np.int64(_hash_words(entries, entry) & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


@kernel
def _number_bytes(
    data: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray,
    start: int,
    kept: np.ndarray,
    ends: np.ndarray,
    hashes: np.ndarray,
    slots: np.ndarray,
    size: int,
    found: np.ndarray,
) -> tuple[int, int]:
    """As `_number_words`, for strings."""
    mask = slots.size - 1
    for row in range(start, valid.size):
        if not valid[row]:
            found[row] = -1
            continue
        first, length = offsets[row], offsets[row + 1] - offsets[row]
        mixed = np.uint64(0xCBF29CE484222325)
        for at in range(first, first + length):
            mixed = (mixed ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        mixed = _mixed(mixed)
        slot = np.int64(mixed & np.uint64(mask))
        while True:
            entry = slots[slot]
            if entry < 0:
                used = ends[size]
                if size == hashes.size or used + length > kept.size:
                    return row, size
                for at in range(length):
                    kept[used + at] = data[first + at]
                ends[size + 1] = used + length
                hashes[size] = mixed
                slots[slot] = size
                entry = size
                size += 1
                break
            if hashes[entry] == mixed and ends[entry + 1] - ends[entry] == length:
                at = 0
                while at < length and kept[ends[entry] + at] == data[first + at]:
                    at += 1
                if at == length:
                    break
            slot = (slot + 1) & mask
        found[row] = entry
    return valid.size, size


@kernel
def _place_hashes(hashes: np.ndarray, slots: np.ndarray, size: int) -> None:
    mask = slots.size - 1
    for entry in range(size):
        slot = np.int64(hashes[entry] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry
