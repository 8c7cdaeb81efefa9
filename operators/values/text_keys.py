"""Keys of strings and binary: leads, which keep the order, and hashes, for conditions that only ask for equality.

Strings compare by their UTF-8 bytes, which is the order of their code points. Equal bytes have equal keys in every
Arrow type.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from indexes import frozen, kernel, leading_words


def text_leads(array: pa.Array) -> np.ndarray:
    """The first eight bytes as a number; it never falls as the value rises. Cost: O(rows)."""
    return leads_of(*text_bytes(array))


def leads_of(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """As `text_leads`, of the byte strings ``data[offsets[i] : offsets[i + 1]]``."""
    return leading_words(data, offsets)


def text_hashes(array: pa.Array) -> np.ndarray:
    """A hash of all bytes, the same in every process. Cost: O(bytes)."""
    return hashes_of(*text_bytes(array))


def hashes_of(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """As `text_hashes`, of the byte strings ``data[offsets[i] : offsets[i + 1]]``."""
    hashes = np.empty(len(offsets) - 1, np.int64)
    _hash(frozen(data, np.uint8), frozen(offsets, np.int64), hashes)
    return hashes


def text_bytes(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of a column, and the offsets of its values."""
    types = pa.types
    kind = array.type
    if types.is_fixed_size_binary(kind) or types.is_string_view(kind) or types.is_binary_view(kind):
        array = array.cast(pa.large_binary())
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    dtype = np.dtype(np.int64 if wide else np.int32)
    offsets = np.zeros(1, np.int64)
    if offset_buffer is not None and len(array):
        offsets = np.frombuffer(offset_buffer, dtype, count=len(array) + 1, offset=array.offset * dtype.itemsize)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return frozen(data, np.uint8), frozen(offsets, np.int64)


@kernel
def _hash(data: np.ndarray, offsets: np.ndarray, hashes: np.ndarray) -> None:
    """Eight bytes at a time, each mixed as in MurmurHash3 (public domain), then its finaliser."""
    for row in range(hashes.size):
        begin, end = offsets[row], offsets[row + 1]
        state = np.uint64(end - begin)
        place = begin
        while place < end:
            word = np.uint64(0)
            for i in range(min(8, end - place)):
                word |= np.uint64(data[place + i]) << np.uint64(8 * i)
            word *= np.uint64(0x87C37B91114253D5)
            word = (word << np.uint64(31)) | (word >> np.uint64(33))
            state ^= word * np.uint64(0x4CF5AD432745937F)
            state = ((state << np.uint64(27)) | (state >> np.uint64(37))) * np.uint64(5) + np.uint64(0x52DCE729)
            place += 8
        state ^= state >> np.uint64(33)
        state *= np.uint64(0xFF51AFD7ED558CCD)
        state ^= state >> np.uint64(33)
        state *= np.uint64(0xC4CEB9FE1A85EC53)
        hashes[row] = np.int64(state ^ (state >> np.uint64(33)))
