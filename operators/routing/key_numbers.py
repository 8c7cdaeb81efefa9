"""Numbers for the keys of rows: equal keys of either side have the same number, 0, 1, 2, ... as they appear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.routing.key_dictionary import ByteDictionary, NearbyWords, WordDictionary
from operators.routing.key_words import WORDS, key_words, whole_numbers

Int64 = npt.NDArray[np.int64]
Columns = Sequence[pa.Array | pa.ChunkedArray]


class KeyNumbers:
    """Numbers keys of one or more columns, on both sides of a join.

    columns: names of the key's columns on the left and on the right, in the order of the equalities.

    Cost: O(1) for a row. Memory: some 40 bytes for each column of a distinct key, and its text; nothing is forgotten.
    """

    def __init__(self, columns: tuple[Sequence[str], Sequence[str]]) -> None:
        assert len(columns[0]) == len(columns[1]) > 0, "a key has a column"
        self._columns = columns
        self._texts = ByteDictionary()
        self._keys = WordDictionary(WORDS * len(columns[0]))
        self._near = NearbyWords()

    def __len__(self) -> int:
        """Distinct keys so far, on either side."""
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._texts.nbytes + self._keys.nbytes + self._near.nbytes

    def of(self, side: int, columns: Columns, rows: int) -> Int64:
        """The number of each row's key, -1 where it has a null or a NaN."""
        if not rows:
            return np.empty(0, np.int64)
        if len(columns) == 1 and not self._near.gives_up and (values := whole_numbers(columns[0])) is not None:
            return self._of_whole(values)
        parts, valid = [], np.ones(rows, np.bool_)
        for name, column in zip(self._columns[side], columns, strict=True):
            words, present = key_words(name, column, self._texts)
            parts.append(words)
            valid &= present
        return self._keys.numbers(parts[0] if len(parts) == 1 else np.hstack(parts), valid)

    def _of_whole(self, values: Int64) -> Int64:
        found = self._near.numbers(values)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            words = np.zeros((len(unknown), WORDS), np.int64)
            words[:, 0] = values[unknown]
            found[unknown] = self._keys.numbers(words, np.ones(len(unknown), np.bool_))
            self._near.tell(words[:, 0], found[unknown])
        return found

    def check_invariants(self) -> None:
        """Every key is found at its own number."""
        self._keys.check_invariants()
        self._texts.check_invariants()
