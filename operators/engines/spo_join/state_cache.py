"""The shared cache of SPO-Join's second strategy of state management (section 4.2, figure 6 B).

In: the limits of each step from the router. Out, now and then: the window's state, to every PO-Join element.

In the paper the first PO-Join element writes the state to a Redis server, and the others read it at intervals; until
then they report expired rows as false positives. Here the cache holds the router's limits. An element that gets them
late, or early, only drops its expired segments later: no result depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from operators.engines.spo_join.streams import STATE
from operators.protocol.stream_ids import outputs_of
from topology import Batch, Bolt, Emit, Origin, Task, TaskContext

STATE_INTERVAL = 4


@dataclass(frozen=True)
class StateCache(Bolt):
    """Emits every `interval`-th state."""

    interval: int = STATE_INTERVAL

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of((STATE,))

    @property
    def note(self) -> str:
        return f"read every {self.interval} steps"

    def build(self, context: TaskContext) -> Task:
        return StateCacheTask(self.interval)


class StateCacheTask(Task):
    """Counts the steps."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._steps = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self._steps += 1
        if self._steps % self._interval == 0:
            yield Emit(replace(batch, stream=STATE.name))
