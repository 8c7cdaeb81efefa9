"""The join core: stores its share of both windows and compares every row with what it stores (SplitJoin, section 4).

In: steps from the distribution tree.
Out: the matches of every probe row with the rows stored here, then the punctuation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from indexes import prepare_kernels
from operators.engines.shared.index_setting import IndexSetting, index_note
from operators.engines.shared.store_and_probe import StoreAndProbeTask
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import answer_streams
from topology import Bolt, Task, TaskContext


@dataclass(frozen=True)
class JoinCore(Bolt):
    """Core `number` of `cores`; without a setting its index is the nested loop.

    The paper's core has a region for each side, called by where it is drawn. Here a region is the `WindowShare` of its
    side: it stores rows of its own side and answers rows of the other.

    The paper expires rows in two ways (section 4.4): passively, when new rows of a count window push out the oldest,
    and actively, when a row of the other side finds them too old. Live ranges do both, exactly to the row.
    """

    number: int
    cores: int
    negated: tuple[bool, ...]
    ordered: bool
    setting: IndexSetting | None = None
    counts: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        return f"rows {self.number}, {self.number + self.cores}, ...; {index_note(self.setting)}"

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return StoreAndProbeTask(self.negated, self.setting, self.ordered, self.number, self.cores)
