"""The rows of a step that concern one element, where keys decide which element stores a row and which it probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.protocol.element_rows import ElementRows
from operators.protocol.streams import PROBES
from topology import Batch, UnpackedBatch

STORED, PROBING = 1, 2
"""What a row does in an element; a row that does both has the sum."""

_BOTH = STORED + PROBING

_ROLE = "role"


@dataclass(frozen=True)
class DividedRows:
    """Some rows of one side, with their positions.

    rows:  at least one.
    roles: of each row; None: all are stored and probe.
    of:    how many rows the step has on this side, in all elements together and in none.
    """

    rows: ElementRows
    roles: npt.NDArray[np.int8] | None
    of: int

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.rows.num_rows

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return self.rows.nbytes + (0 if self.roles is None else self.roles.nbytes)

    @property
    def stored(self) -> ElementRows | None:
        """The rows that the element stores; None if there are none."""
        return self._of_role(STORED)

    @property
    def probing(self) -> ElementRows | None:
        """The rows that probe in the element; None if there are none."""
        return self._of_role(PROBING)

    def to_arrow(self) -> pa.RecordBatch:
        """Pack as a record batch."""
        packed = self.rows.to_arrow()
        return packed if self.roles is None else packed.append_column(_ROLE, pa.array(self.roles))

    def to_batch(self, side: int, born: float = 0.0) -> Batch:
        """The rows of a side, packed only if they leave the process."""
        return UnpackedBatch(PROBES[side].name, self, first=self.rows.first, born=born, labels=(self.of,))

    @classmethod
    def from_batch(cls, batch: Batch, negated: Sequence[bool]) -> DividedRows:
        """Unpack, unless the batch still carries its rows. `negated[d]`: dimension d is negated."""
        if isinstance(batch.memo, DividedRows):
            return batch.memo
        packed = batch.rows
        roles = packed.column(_ROLE).to_numpy() if _ROLE in packed.schema.names else None
        (of,) = batch.labels
        return cls(ElementRows.from_arrow(packed, batch.first, negated), roles, of)

    def _of_role(self, role: int) -> ElementRows | None:
        if self.roles is None:
            return self.rows
        chosen = np.flatnonzero(self.roles & role)
        if len(chosen) == len(self.roles):
            return self.rows
        return self.rows.taken(chosen) if len(chosen) else None


def roles_or_none(roles: npt.NDArray[np.int8]) -> npt.NDArray[np.int8] | None:
    """None where all rows do both, which then need not be sent."""
    return None if (roles == _BOTH).all() else roles
