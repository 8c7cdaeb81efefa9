"""What a gate emits, checked against the law of steps as it comes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from operators.intake.gate_task import SEQ
from operators.intake.late_rows import LATE_STREAM
from topology import Batch, Emit, Origin, Punctuation

ORIGINS = {"R": Origin("R", 0, 0), "S": Origin("S", 0, 1)}


@dataclass
class Collected:
    """What a gate has sent: (seq, stream, id) of each row, checking the law of steps on the way."""

    rows: list[tuple[int, str, Any]] = field(default_factory=list)
    punctuated: int = -1
    positions: dict[str, int] = field(default_factory=lambda: {"R": 0, "S": 0})
    steps: list[int] = field(default_factory=list)
    pending: int = 0
    late: list[tuple[str, str, int, Any, str]] = field(default_factory=list)

    def take(self, actions: Iterable[Emit]) -> None:
        for action in actions:
            message = action.message
            if isinstance(message, Batch) and message.stream == LATE_STREAM:
                assert message.first == len(self.late)
                self.late += zip(*(column.to_pylist() for column in message.rows.columns), strict=True)
            elif isinstance(message, Batch):
                seq = message.rows.column(SEQ).to_pylist()
                assert seq == sorted(seq)
                assert min(seq) > self.punctuated
                assert message.first == self.positions[message.stream]
                self.positions[message.stream] += len(seq)
                self.pending += len(seq)
                self.rows += zip(seq, [message.stream] * len(seq), message.rows.column("id").to_pylist(), strict=True)
            else:
                assert isinstance(message, Punctuation)
                assert message.seq == self.punctuated + self.pending
                self.punctuated = message.seq
                self.steps.append(self.pending)
                self.pending = 0
