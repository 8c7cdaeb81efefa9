"""What a log holds: records, and their places in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa


@dataclass(frozen=True)
class Record:
    """One entry of a log: a small header that JSON can express, and any number of record batches.

    The log gives the header no meaning. An input log puts producer, source and offset into it, an order log the
    numbers of a step.
    """

    header: Mapping[str, object] = field(default_factory=dict)
    batches: tuple[pa.RecordBatch, ...] = ()


class Position(NamedTuple):
    """The place of a record: later records have greater positions, also across segments and epochs.

    segment: the number of its segment.
    record: its number within the segment; the segment's start record is number 0.
    """

    segment: int
    record: int
