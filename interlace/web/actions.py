"""What may be done to a topology from outside: each action by its name, with the arguments that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from topology import Handle, InterlaceError, State, Status

DRAIN_AND_STOP = "drain-and-stop"
"""Its second half is the desk's: to wait, and to stop."""


class ActionError(InterlaceError):
    """The arguments of an action cannot be meant."""


@dataclass(frozen=True)
class Action:
    """One action; `arguments` holds the type of each, and all but those in `required` may be left out."""

    name: str
    title: str
    run_method: Callable[[Handle, dict[str, Any]], Any] = field(repr=False)
    arguments: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    def checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments, or an `ActionError` that says what is wrong with them."""
        for name in arguments:
            if name not in self.arguments:
                known = ", ".join(self.arguments) or "none"
                raise ActionError(f"{self.name} has no argument '{name}'; arguments: {known}")
        for name in self.required:
            if name not in arguments:
                raise ActionError(f"{self.name} needs the argument '{name}'")
        for name, value in arguments.items():
            if self.arguments[name] == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ActionError(f"{self.name}: '{name}' must be a number")
            if self.arguments[name] == "counts":
                _check_counts(self.name, name, value)
        return arguments

    def run(self, running: Handle, arguments: dict[str, Any]) -> Any:
        """Do it, with arguments that have been checked."""
        return self.run_method(running, self.checked(arguments))


def _check_counts(action: str, name: str, value: Any) -> None:
    good = isinstance(value, dict) and bool(value)
    if not good or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in value.values()):
        raise ActionError(f"{action}: '{name}' must be an object of component and number of tasks, as {{\"work\": 4}}")


def _rebalance(running: Handle, arguments: dict[str, Any]) -> None:
    counts = {name.replace("-", "_"): count for name, count in arguments["tasks"].items()}
    running.rebalance(**counts)


ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        Action(
            "deactivate",
            "Take no more rows until it is activated: calls that send wait",
            lambda running, arguments: running.deactivate(),
        ),
        Action("activate", "Take rows again", lambda running, arguments: running.activate()),
        Action("savepoint", "Copy the state", lambda running, arguments: running.savepoint()),
        Action("rebalance", "Change the number of tasks of components", _rebalance, {"tasks": "counts"}, ("tasks",)),
        Action(
            "drain", "End the inputs: results end when all has been read", lambda running, arguments: running.finish()
        ),
        Action(
            DRAIN_AND_STOP,
            "End the inputs, and stop when all results have been read, or after some seconds at the latest",
            lambda running, arguments: running.finish(),
            {"seconds": "number"},
        ),
        Action("stop", "Stop, for everyone who uses it", lambda running, arguments: running.stop()),
    )
}


def offered(status: Status) -> list[str]:
    """The names of the actions that make sense now."""
    if status.state is State.FAILED:
        return ["stop"]
    senseless = "activate" if status.active else "deactivate"
    return [name for name in ACTIONS if name != senseless]
