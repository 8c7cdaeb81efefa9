"""The last steps of a gate, as far back as later results depend on them.

A join that is a part of a topology has no journal of its own: what it knows is in the snapshots of the topology. That
of its gate holds the rows that wait, and these steps. A new life emits them again. So routers, elements and collector
fill their windows as they did before, whatever the engine; what the collector makes of them has come out before, and is
dropped behind it (`topology/steps/leaving.py`).

    steps     1-4   5-8   9-12   13-16     a window of 6 rows: results after 16 depend on rows from 11 on
    kept                  9-12   13-16
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from operators.intake.retention import Retention
from topology import Batch, Facts, Punctuation, rows_bytes

BLOCK_ROWS = 1 << 13
"""Steps are forgotten in blocks of about so many rows, or a step if that is less."""

LEAST_BYTES = 1 << 20
"""Less is not worth looking for what may be forgotten."""


@dataclass
class _Block:
    """Consecutive messages of the gate, and the place before them.

    seq:       the last sequence number before them.
    positions: the rows of each stream before them.
    reached:   see `Retention.reached`; empty before the first row.
    """

    seq: int = -1
    positions: Mapping[str, int] = field(default_factory=dict)
    reached: Facts = field(default_factory=dict)
    messages: list[Batch | Punctuation] = field(default_factory=list)
    rows: int = 0
    nbytes: int = 0

    def add(self, message: Batch | Punctuation) -> None:
        self.messages.append(message)
        if isinstance(message, Batch):
            self.rows += message.num_rows
            self.nbytes += rows_bytes(message.rows)


class KeptSteps:
    """Made by the gate of a part that keeps a state; keeps at most about twice what is needed."""

    def __init__(self, retention: Retention, step_rows: int, least_bytes: int = LEAST_BYTES) -> None:
        self._retention = retention
        self._block_rows = min(step_rows, BLOCK_ROWS)
        self._least_bytes = least_bytes
        self._blocks = deque([_Block()])
        self._due = least_bytes

    @property
    def nbytes(self) -> int:
        """The bytes of all rows that are kept."""
        return sum(block.nbytes for block in self._blocks)

    @property
    def begins_block(self) -> bool:
        """Whether a block should begin behind the last step."""
        return self._blocks[-1].rows >= self._block_rows

    def add(self, message: Batch | Punctuation) -> None:
        """Keep what the gate emits. Cost: O(1)."""
        self._blocks[-1].add(message)

    def begin_block(self, seq: int, positions: Mapping[str, int], reached: Facts) -> None:
        """The gate is at a place between two steps; see `_Block`. Cost: O(blocks), seldom."""
        self._blocks.append(_Block(seq, dict(positions), reached))
        if self.nbytes >= self._due:
            self.forget(reached)

    def forget(self, reached: Facts) -> None:
        """Forget what no result after a place depends on."""
        for _ in range(self._retention.start_for([block.reached for block in self._blocks], reached)):
            self._blocks.popleft()
        self._due = max(self._least_bytes, 2 * self.nbytes)

    @property
    def begin(self) -> tuple[int, Mapping[str, int]]:
        """The place before the first step that is kept: the last sequence number, and the rows of each stream."""
        return self._blocks[0].seq, self._blocks[0].positions

    def messages(self) -> Iterator[Batch | Punctuation]:
        """All that is kept, in order."""
        for block in self._blocks:
            yield from block.messages

    def written(self) -> tuple[list[Any], list[pa.RecordBatch]]:
        """Return the blocks as facts and rows."""
        facts = [
            [block.seq, block.positions, block.reached, [_written(message) for message in block.messages]]
            for block in self._blocks
        ]
        return facts, [message.rows for message in self.messages() if isinstance(message, Batch)]

    def read(self, facts: Sequence[Any], rows: Iterator[pa.RecordBatch]) -> None:
        """Go on from what was `written`."""
        self._blocks.clear()
        for seq, positions, reached, messages in facts:
            block = _Block(seq, positions, reached)
            for message in messages:
                block.add(
                    Punctuation(message) if isinstance(message, int) else Batch(message[0], next(rows), message[1])
                )
            self._blocks.append(block)
        self._due = max(self._least_bytes, 2 * self.nbytes)

    def check_invariants(self) -> None:
        # blocks follow one another without gaps
        for block, after in zip(self._blocks, list(self._blocks)[1:], strict=False):
            assert block.messages
            assert _written(block.messages[-1]) == after.seq
        # what is counted is there
        assert all(block.nbytes >= 0 and block.rows >= 0 for block in self._blocks)


def _written(message: Batch | Punctuation) -> int | list[Any]:
    return message.seq if isinstance(message, Punctuation) else [message.stream, message.first]
