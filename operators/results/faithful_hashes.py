"""Hashes may stand for texts as long as no two different texts that are held share a hash."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from operators.results.text_settling import Texts
from operators.routing.key_dictionary import ByteDictionary, WordDictionary
from operators.values.key_types import decoded
from operators.values.text_keys import hashes_of, text_bytes

LEAST_ROWS = 1 << 16
"""Rows that are taken between two removals of texts that are no longer held."""


class HeldTexts(Protocol):
    """The texts of live rows."""

    def texts(self, side: int, column: str) -> Texts:
        """A column of a side, in place."""


class FaithfulHashes:
    """Checks every row's text of an equality once, so that its candidate pairs need no check.

    Keys of an equality between texts are their hashes. If there are as many different hashes as different texts, there
    is no collision: equal hashes mean equal texts, and every candidate is a match. After a collision candidates are
    compared, until the texts that collided are dropped.

    Cost: O(bytes) for a row, amortised. Memory: the distinct texts among up to three times the live rows, and about
    80 bytes for each.
    """

    def __init__(self, columns: tuple[str, str], held: HeldTexts) -> None:
        """`held` has the texts of all rows that may still be in a pair."""
        self._columns = columns
        self._held = held
        self._taken = 0
        self._take_again()

    @property
    def hold(self) -> bool:
        """Whether equal hashes mean equal texts."""
        return len(self._texts) == len(self._hashes)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._texts.nbytes + self._hashes.nbytes

    def take(self, side: int, rows: pa.RecordBatch) -> None:
        """Check new rows of a side, which are held; now and then drop texts that are no longer held."""
        self._taken += rows.num_rows
        if self._taken > LEAST_ROWS + 2 * sum(len(texts.ends) - 1 for texts in self._live()):
            self._take_again()
        else:
            self._add(*text_bytes(decoded(rows.column(self._columns[side]))))

    def _take_again(self) -> None:
        """Drop everything except the texts of live rows."""
        self._texts, self._hashes = ByteDictionary(), WordDictionary(1)
        live = self._live()
        for texts in live:
            self._add(texts.data, texts.ends - texts.base)
        self._taken = 0

    def _live(self) -> list[Texts]:
        return [self._held.texts(side, column) for side, column in enumerate(self._columns)]

    def _add(self, data: np.ndarray, offsets: np.ndarray) -> None:
        every = np.ones(len(offsets) - 1, np.bool_)  # a null is held as an empty text, which does no harm
        self._texts.numbers(np.array(data, np.uint8), np.array(offsets, np.int64), every)
        self._hashes.numbers(hashes_of(data, offsets).reshape(-1, 1), every)
