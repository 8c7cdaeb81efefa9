"""The task of a decorated bolt: calls the user's code, checks what it returns, and keeps its state.

The code is an object with the method `execute`, and perhaps with `on_event_time(time)`, `tick(seconds)`, `on_end()`,
`metrics()`, `snapshot()` and `restore(bytes)`. A decorated function is made such an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from topology.bolts import plain_values
from topology.bolts.returned_rows import Returned, ReturnedRows
from topology.graph.components import Emit, Origin, Task
from topology.graph.messages import Batch, Time

NOTHING: dict[str, Any] = {}


class FunctionCode:
    """A function as an object with one method."""

    __slots__ = ("execute",)

    def __init__(self, function: Callable[..., Returned]) -> None:
        self.execute = function


class UserTask(Task):
    """Calls `execute(rows)` for each batch, or `execute(row)` for each row; a subclass calls it otherwise."""

    def __init__(self, component: str, code: Any, returned: ReturnedRows, by_row: bool = False) -> None:
        self.component = component
        self.code = code
        self.returned = returned
        self._by_row = by_row

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        if self._by_row:
            return self.returned.emits(map(self.code.execute, batch.rows.to_pylist()), batch.born, dicts_are_rows=True)
        return self.returned.emits(self.code.execute(batch.rows), batch.born)

    def on_event_time(self, time: Time) -> Iterable[Emit]:
        return self.call("on_event_time", time)

    def on_tick(self, seconds: float) -> Iterable[Emit]:
        return self.call("tick", seconds)

    def on_end(self) -> Iterable[Emit]:
        return self.call("on_end")

    def call(self, name: str, *arguments: object) -> Iterable[Emit]:
        """Call a method that the user's code may have."""
        method = getattr(self.code, name, None)
        return () if method is None else self.returned.emits(method(*arguments))

    def metrics(self) -> Mapping[str, float]:
        method = getattr(self.code, "metrics", None)
        return {} if method is None else method()

    def snapshot(self) -> bytes:
        state = {"returned": self.returned.state(), "own": self.own_state(), "code": self._code_state()}
        return plain_values.to_bytes(state, f"the state of bolt '{self.component}'")

    def restore(self, snapshot: bytes) -> None:
        state = plain_values.from_bytes(snapshot)
        self.returned.resume(state["returned"])
        self.go_on(state["own"])
        if isinstance(state["code"], bytes):
            self.code.restore(state["code"])
        elif state["code"]:
            vars(self.code).update(state["code"])

    def own_state(self) -> dict[str, Any]:
        """What a subclass holds beside the user's code, as plain values."""
        return NOTHING

    def go_on(self, state: dict[str, Any]) -> None:
        """Take what `own_state` returned."""

    def _code_state(self) -> bytes | dict[str, Any]:
        if hasattr(self.code, "snapshot"):
            written = self.code.snapshot()
            if not isinstance(written, bytes):
                raise TypeError(
                    f"snapshot() of bolt '{self.component}' must return bytes, not {type(written).__name__}"
                )
            return written
        return dict(getattr(self.code, "__dict__", NOTHING))
