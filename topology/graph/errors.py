"""Errors, grouped by who has to fix them.

`TopologyError` and its subclasses: the description of a topology is wrong, and its author changes it.
`MissingPackageError`: the machines lack what the topology imports, and their owner installs it.
`InputError` and its subclasses: a client's call is refused. Nothing has changed, and the topology goes on.
`ClusterError`: the Ray cluster cannot be joined. Nothing was launched.
`StoreError`: what survives failures cannot be kept or read, and the owner of the disk or bucket helps.
`FencedError`: this process has been replaced, and ends.
`TakenOverError`: another reader reads on, and this one ends.
`TaskError`: the code of a component failed while running, and the topology has stopped.
"""

from __future__ import annotations

from typing import Self


class InterlaceError(Exception):
    """The root of all errors that this project raises on purpose."""


class TopologyError(InterlaceError, ValueError):
    """The description of a topology is wrong; the message names the component."""


class DuplicateComponentError(TopologyError):
    """Two components have the same name."""


class UnknownComponentError(TopologyError):
    """A subscription names a component that does not exist."""


class UnknownStreamError(TopologyError):
    """A subscription names a stream that its component does not declare."""


class CycleError(TopologyError):
    """Components feed each other in a cycle."""


class GroupingError(TopologyError):
    """A grouping does not fit the stream it is used on."""


class UnpicklableError(TopologyError):
    """A component's description cannot be sent to another process."""


class NoSnapshotError(TopologyError):
    """A component says that its tasks have snapshots, and they have none, or the reverse."""


class ReturnedRowsError(TopologyError):
    """The function of a bolt returned something that is not rows, or rows that do not fit its stream."""


class MissingPackageError(InterlaceError, RuntimeError):
    """A machine of the cluster lacks a package, or has another version of it."""


class NameTakenError(TopologyError):
    """A topology of that name is running."""


class UnknownTopologyError(TopologyError, KeyError):
    """No topology of that name is running."""

    def __str__(self) -> str:
        return str(self.args[0])


class InputError(InterlaceError, ValueError):
    """A call from outside is refused; nothing has changed.

    rows_taken: where rows were sent ahead of the answers, how many of them have been taken, from the first; else None.
    """

    rows_taken: int | None = None


class UnknownInputError(InputError, KeyError):
    """The topology has no input of that name."""

    def __str__(self) -> str:
        return str(self.args[0])


class SchemaError(InputError):
    """A batch does not have the columns and types of its stream."""


class OutOfOrderError(InputError):
    """Within one source, event time went backwards."""


class SourceEndedError(InputError):
    """A source sent rows after it had ended."""


class OffsetGapError(InputError):
    """A source sent rows with an offset beyond its next one: rows before them are missing."""

    @classmethod
    def between(cls, stream: str, source: str, known: int, offset: int) -> Self:
        """Return the error of rows from `offset` on, where those from `known` on are missing."""
        return cls(
            f"stream '{stream}', source '{source}': rows from offset {offset} on were sent, but those from {known} to "
            f"{offset - 1} are missing; go on from next_offset(), which is {known}"
        )


class SinkHasReaderError(InputError):
    """A sink is read by one reader at a time, and has one."""


class AcknowledgedError(InputError):
    """A reader asks for results that have been acknowledged and are gone; the message names the first that is kept."""


class QuotaError(InputError):
    """A client asks for more than its token may use; the message names the limit and the remedy."""


class AuthenticationError(InputError):
    """A call has no valid token, or one that lacks the right."""


class ClusterError(InterlaceError, ConnectionError):
    """A Ray cluster cannot be joined; the message says what to do. Nothing was launched."""


class TaskError(InterlaceError, RuntimeError):
    """The code of a task raised an error; carries the user's traceback as text.

    after: where it is not known which rows the task worked on: the end of the last step that it was through with.
    """

    after: int | None = None

    def __init__(self, component: str, task: int, traceback_text: str) -> None:
        super().__init__(component, task, traceback_text)
        self.component = component
        self.task = task
        self.traceback_text = traceback_text

    def __str__(self) -> str:
        last = self.traceback_text.strip().splitlines()[-1:] or ["unknown error"]
        return (
            f"component '{self.component}', task {self.task}, failed: {last[0]}\n"
            f"--- traceback of the task ---\n{self.traceback_text.rstrip()}"
        )


class TakenOverError(InterlaceError, RuntimeError):
    """Another reader has taken over the sink; what this one has not acknowledged is given to that one."""


class StoppedError(InterlaceError, RuntimeError):
    """The topology has been stopped: it takes no rows and gives no results."""


class ConnectionLostError(StoppedError):
    """The process at the other end of a Flight stream has stopped or died."""


class TlsError(ConnectionLostError):
    """There is no encrypted connection: the peer's certificate is not trusted, or one of the two does not use TLS."""


class StoreError(InterlaceError, OSError):
    """A store cannot be opened, read or written; the message names it and says what to do."""


class DamagedLogError(StoreError):
    """A durable log has lost or changed something that was acknowledged; the message names segment and place."""


class FencedError(InterlaceError, RuntimeError):
    """Another process has taken over what this one was writing; this one acknowledges nothing any more."""


class StaleStreamError(InputError):
    """A message came from a replaced incarnation of its sender, or after a gap."""


ERROR_KINDS: dict[str, type[InterlaceError]] = {
    name: kind for name, kind in vars().items() if isinstance(kind, type) and issubclass(kind, InterlaceError)
}
"""Every error above by its name, so that errors can cross a process boundary as text."""
