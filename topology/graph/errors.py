"""What can go wrong, by whom it is to be put right.

`TopologyError` and its kinds are raised while a topology is being described: the user changes the description.
`InputError` and its kinds refuse something a client sent: nothing has changed, the topology goes on.
`TaskError` reports that the code of a component failed while running: the topology has stopped.
"""

from __future__ import annotations


class InterlaceError(Exception):
    """The root of everything this project raises on purpose."""


class TopologyError(InterlaceError, ValueError):
    """The description of a topology is wrong; the message names the component."""


class DuplicateComponentError(TopologyError):
    """Two components carry one name."""


class UnknownComponentError(TopologyError):
    """A subscription names a component that does not exist."""


class UnknownStreamError(TopologyError):
    """A subscription names a stream that its component does not declare."""


class CycleError(TopologyError):
    """The components feed each other in a circle."""


class GroupingError(TopologyError):
    """A grouping does not fit the stream it is used on."""


class UnpicklableError(TopologyError):
    """A component's description cannot be sent to another process."""


class InputError(InterlaceError, ValueError):
    """Something sent from outside is refused; nothing has changed."""


class UnknownInputError(InputError, KeyError):
    """No input of that name is fed from outside."""

    def __str__(self) -> str:
        return str(self.args[0])


class SchemaError(InputError):
    """A batch does not have the columns or types its stream was pinned to."""


class OutOfOrderError(InputError):
    """Within one source, event time went backwards."""


class SourceEndedError(InputError):
    """A source sent rows after it said that it had ended."""


class AuthenticationError(InputError):
    """A call came without a token, or with one that lacks the right."""


class TaskError(InterlaceError, RuntimeError):
    """A task's own code raised; carries the user's traceback as text."""

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


class StoppedError(InterlaceError, RuntimeError):
    """The topology has been stopped; it takes and gives nothing any more."""


class ConnectionLostError(StoppedError):
    """A process on the other end of a Flight stream is gone: it has stopped, or it died."""


class StaleStreamError(InputError):
    """A message came from an earlier incarnation of its sender, twice, or after a gap."""


ERROR_KINDS: dict[str, type[InterlaceError]] = {
    name: kind for name, kind in vars().items() if isinstance(kind, type) and issubclass(kind, InterlaceError)
}
"""Every error above by its name, so that an error can cross a process boundary as text."""
