"""Code of the user's that is called when tasks start, stop and fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from topology.graph.components import TaskContext

log = logging.getLogger("interlace")


class TaskHook:
    """Subclass it, and give objects to `LocalRuntime(hooks=[...])` or `RayRuntime(hooks=[...])`.

    A hook travels to every process of a topology, so it must be picklable: open files and connections in `on_start`.
    Its methods are called in the process of the task. An error of a hook is logged, and changes nothing else.
    """

    def on_start(self, context: TaskContext) -> None:
        """Called before the first message of a task; after a recovery again, for the task that goes on."""

    def on_stop(self, context: TaskContext) -> None:
        """Called when a task will get no more calls; not if its process is killed."""

    def on_error(self, context: TaskContext, error: BaseException) -> None:
        """Called with what the code of a task has raised, before the topology ends or recovers."""


def call_hooks(hooks: Sequence[TaskHook], call: Callable[[TaskHook], None]) -> None:
    """Call every hook, whatever the others do."""
    for hook in hooks:
        try:
            call(hook)
        except Exception:
            log.exception("the task hook %s failed", type(hook).__name__)
