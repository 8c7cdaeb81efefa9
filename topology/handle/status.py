"""What a running topology says about itself: its state, and where its tasks run."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topology.graph.graph import TaskName


class State(enum.Enum):
    """The life of a topology; FAILED and STOPPED are its two ends. RECOVERING leads back to RUNNING, or to FAILED."""

    STARTING = "starting"
    RUNNING = "running"
    RECOVERING = "recovering"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Vitals:
    """What a process uses of its machine, in bytes, and what it waits for.

    memory:           its own.
    free_memory:      what the machine, or the container, could still give.
    free_disk:        where rows are spilled.
    log_bytes:        of the log that it writes, where the state of the topology is kept.
    checkpoint_bytes: of the snapshots of all tasks that belong to that log.
    free_state:       what can still be written there; None if it keeps no state, or in a store without a limit.
    trouble:          why rows wait here although the topology runs; empty if nothing is wrong.
    """

    memory: int
    free_memory: int
    free_disk: int
    log_bytes: int = 0
    checkpoint_bytes: int = 0
    free_state: int | None = None
    trouble: str = ""


@dataclass(frozen=True)
class WorkerStatus:
    """One process of a topology.

    silent: seconds since its last sign of life; 0 for tasks in this process.
    vitals: None while it has not reported.
    """

    name: str
    node: str
    pid: int
    tasks: tuple[TaskName, ...]
    silent: float = 0.0
    vitals: Vitals | None = None


@dataclass(frozen=True)
class Event:
    """A change in the life of a topology.

    at:   seconds since 1970.
    text: why; for an error in a component, the traceback.
    task: where, if one task is to blame.
    """

    at: float
    state: State
    text: str = ""
    task: TaskName | None = None


@dataclass(frozen=True)
class Status:
    """A topology at one moment; prints as a table.

    error:      why it failed, or why it recovers; empty if it does neither.
    recoveries: how often it has been started again after a failure.
    events:     the last changes of its state, oldest first.
    trouble:    why it waits although it runs, such as a full disk; empty if nothing is wrong.
    active:     whether it takes rows; see `Handle.deactivate`.
    """

    name: str
    state: State
    workers: tuple[WorkerStatus, ...]
    error: str = ""
    detached: bool = False
    encrypted: bool = False
    recoveries: int = 0
    events: tuple[Event, ...] = ()
    trouble: str = ""
    active: bool = True

    def __str__(self) -> str:
        kinds = (("deactivated", not self.active), ("detached", self.detached), ("encrypted", self.encrypted))
        notes = [note for note, holds in kinds if holds]
        if self.recoveries:
            notes.append(f"{self.recoveries} recover{'y' if self.recoveries == 1 else 'ies'}")
        lines = [f"{self.name}: {', '.join([self.state.value, *notes])}"]
        for worker in self.workers:
            tasks = ", ".join(f"{component}[{number}]" for component, number in worker.tasks)
            silent = f", silent for {worker.silent:.0f} s" if worker.silent >= 3 else ""
            lines.append(f"  {worker.name} on {worker.node} (process {worker.pid}{silent}): {tasks}")
        return "\n".join([*lines, *(text for text in (self.error, self.trouble) if text)])
