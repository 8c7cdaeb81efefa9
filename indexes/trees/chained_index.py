"""A chain of B+-trees; the older ones may be immutable."""

from __future__ import annotations

from typing import Literal, get_args

from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.key_index import Parameter
from indexes.one_key.subwindows import Subindex, SubwindowIndex
from indexes.trees.breadth_first_tree import BreadthFirstTree
from indexes.trees.linked_tree import FANOUT, LinkedTree

Design = Literal["B-chain", "IB-chain"]
"""An archived subindex stays the B+-tree that it was (B-chain) or becomes an immutable one (IB-chain)."""


class ChainedIndex(SubwindowIndex):
    """A window of `chain_length` subindexes: new rows enter the active one, old rows leave a whole tree at a time.

    The chained index of PIM-Tree (section 2.2.2, designs in section 5). The active subindex is a B+-tree. When it is
    full it is archived: unchanged in the B-chain, as an immutable B+-tree in the IB-chain. No row is ever removed
    individually; in return, every probe searches all subindexes. The window is covered by those between the oldest and
    the active one, and by these two in part, so a subindex holds the window's (chain_length - 1)th part.

    Where we depart: subwindows are counted in positions, so a row with an invalid key takes its place, too. The
    archived trees of the IB-chain lie in arrays of exactly their size.

        window 8, chain_length 3      rows 0-3 | 4-7 | 8 9      archived, archived, active
        expire(2)                     all three are searched; positions leave out rows 0 and 1
        expire(4)                     drops the first

    Cost: O(log n) to insert a row, with IB-chain O(1) for it to be archived; O(chain_length * log n) for a
    band, O(1) for each row in it; nothing to expire. Memory: 25 to 31 bytes a row, archived in the IB-chain 17.
    """

    def __init__(
        self,
        window: int,
        chain_length: int = 2,
        design: Design = "IB-chain",
        fanout: int = FANOUT,
        dimensions: int = 1,
        *,
        key: int = 0,
        first_position: int = 0,
    ) -> None:
        check_whole_number("ChainedIndex", "window", window)
        # One subindex fills while another expires.
        check_whole_number("ChainedIndex", "chain_length", chain_length, least=2)
        check_whole_number("ChainedIndex", "fanout", fanout, least=3)
        if design not in get_args(Design):
            raise ValueError(f"ChainedIndex: design must be one of {', '.join(get_args(Design))}, not {design!r}")
        super().__init__(-(-window // (chain_length - 1)), dimensions, key=key, first_position=first_position)
        self.window = window
        self.chain_length = chain_length
        self.design: Design = design
        self.fanout = fanout
        self._leaves = 0

    def parameters(self) -> dict[str, Parameter]:
        return {
            "window": self.window,
            "chain_length": self.chain_length,
            "design": self.design,
            "fanout": self.fanout,
        }

    def _open(self, previous: Subindex | None) -> Subindex:
        return LinkedTree(self.fanout, self._leaves)

    def _seal(self, full: Subindex) -> Subindex:
        assert isinstance(full, LinkedTree)
        # The next one will need about as many nodes.
        self._leaves = full.leaves
        return full if self.design == "B-chain" else BreadthFirstTree.of(*full.entries())

    def check_invariants(self) -> None:
        super().check_invariants()
        # All subindexes except the active one are archived as the design says.
        archived = LinkedTree if self.design == "B-chain" else BreadthFirstTree
        assert all(isinstance(subindex, archived) for subindex in self.subindexes[:-1])
        assert all(isinstance(subindex, LinkedTree) for subindex in self.subindexes[-1:])
        # A window of rows is in at most `chain_length` subindexes.
        assert self.next_position - self._below > self.window or len(self.subindexes) <= self.chain_length
