"""`@bolt`: makes a bolt of one function, or of a class with one method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import pyarrow as pa

from topology.bolts.keyed_task import KeyedTask
from topology.bolts.returned_rows import ReturnedRows
from topology.bolts.user_task import FunctionCode, UserTask
from topology.bolts.windowed_task import LATE, WindowedTask
from topology.bolts.windows import Windowing
from topology.graph.components import DEFAULT_STREAM, Bolt, Task, TaskContext
from topology.graph.errors import TopologyError


@dataclass(frozen=True)
class DecoratedBolt(Bolt):
    """A bolt that `bolt` has made. Called, a function's bolt calls the function, so that a test can; a class's bolt
    returns one whose tasks make their object with these arguments.

    code:         the function, or the class.
    schema:       of the rows that it returns; None: that of the first rows.
    side_outputs: further streams, each with its schema.
    per:          whether the code gets a batch or a row at a time.
    key:          the columns whose values have a state of their own; empty: there is none.
    window:       what rows it gets together; None: those of a batch.
    tick:         seconds between two calls of `tick`; None: it is never called.
    arguments:    those of the class.
    """

    code: Callable[..., Any]
    schema: pa.Schema | None = None
    side_outputs: tuple[tuple[str, pa.Schema | None], ...] = ()
    per: Literal["batch", "row"] = "batch"
    key: tuple[str, ...] = ()
    window: Windowing | None = None
    tick: float | None = None
    arguments: tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]] = ((), ())
    snapshots = True

    def __post_init__(self) -> None:
        shown = self.note
        if not callable(self.code):
            raise TopologyError(f"il.bolt makes a bolt of a function or a class, not of {self.code!r}")
        if isinstance(self.code, type) and not callable(getattr(self.code, "execute", None)):
            raise TopologyError(f"il.bolt: class {shown} needs the method execute(self, {self._parameters})")
        if inspect.iscoroutinefunction(self.code):
            raise TopologyError(f"il.bolt: {shown} is an async function; a task waits for nothing: make it a plain one")
        if self.per not in ("batch", "row"):
            raise TopologyError(f"il.bolt(per={self.per!r}) of {shown}: say 'batch' or 'row'")
        if self.per == "row" and (self.key or self.window is not None):
            raise TopologyError(f"il.bolt of {shown}: key= and window= give batches; leave out per='row'")
        if self.window is not None and not isinstance(self.window, Windowing):
            raise TopologyError(
                f"il.bolt(window={self.window!r}) of {shown}: say il.Tumbling, il.Sliding or il.Sessions"
            )
        if not _takes(self.code, len(self._parameters.split(","))):
            what = f"{shown}.execute" if isinstance(self.code, type) else shown
            more = "" if self.key or self.window is not None else "; a key or a window comes with key= or window="
            raise TopologyError(f"il.bolt calls {what} with ({self._parameters}), which it does not take{more}")
        if self.tick is not None and not self.tick > 0:
            raise TopologyError(f"il.bolt(tick={self.tick!r}) of {shown}: say how many seconds, more than 0")
        for name, _ in self.side_outputs:
            if name == DEFAULT_STREAM or (name == LATE and self.window is not None):
                raise TopologyError(f"il.bolt of {shown}: the stream '{name}' is there already; rename the side output")

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        late = {} if self.window is None else {LATE: None}
        return {DEFAULT_STREAM: self.schema, **late, **dict(self.side_outputs)}

    @property
    def note(self) -> str:
        return getattr(self.code, "__name__", type(self.code).__name__)

    @property
    def tick_seconds(self) -> float | None:
        return self.tick

    def build(self, context: TaskContext) -> Task:
        name = context.component
        arguments, named = self.arguments
        code = self.code(*arguments, **dict(named)) if isinstance(self.code, type) else FunctionCode(self.code)
        returned = ReturnedRows(name, {DEFAULT_STREAM: self.schema, **dict(self.side_outputs)})
        if self.window is not None:
            return WindowedTask(name, code, returned, self.window, self.key)
        if self.key:
            return KeyedTask(name, code, returned, self.key, self.tick is not None)
        return UserTask(name, code, returned, self.per == "row")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if isinstance(self.code, type):
            return replace(self, arguments=(arguments, tuple(named.items())))
        return self.code(*arguments, **named)

    @property
    def _parameters(self) -> str:
        if self.window is not None:
            return "window, rows"
        return "key, rows" if self.key else "row" if self.per == "row" else "rows"


def _takes(code: Callable[..., Any], count: int) -> bool:
    """Whether a function, or a class's method `execute`, can be called with so many arguments."""
    if isinstance(code, type):
        if isinstance(inspect.getattr_static(code, "execute"), staticmethod | classmethod):
            return True
        code, count = code.execute, count + 1  # type: ignore[attr-defined]
    try:
        inspect.signature(code).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # some C functions have no signature
        return True
    return True


@overload
def bolt(code: Callable[..., Any], /) -> DecoratedBolt: ...


@overload
def bolt(
    *,
    schema: pa.Schema | None = None,
    side_outputs: Iterable[str] | Mapping[str, pa.Schema | None] = (),
    per: Literal["batch", "row"] = "batch",
    key: str | Iterable[str] = (),
    window: Windowing | None = None,
    tick: float | None = None,
) -> Callable[[Callable[..., Any]], DecoratedBolt]: ...


def bolt(
    code: Callable[..., Any] | None = None,
    /,
    *,
    schema: pa.Schema | None = None,
    side_outputs: Iterable[str] | Mapping[str, pa.Schema | None] = (),
    per: Literal["batch", "row"] = "batch",
    key: str | Iterable[str] = (),
    window: Windowing | None = None,
    tick: float | None = None,
) -> DecoratedBolt | Callable[[Callable[..., Any]], DecoratedBolt]:
    """Make a bolt of a function, or of a class with the method `execute`.

    The code gets a record batch and returns None, a record batch, a table or another frame, a dict of columns, a dict
    of values (one row), `il.side(stream, rows)`, or an iterable of these.

    schema:       of the rows that it returns, which are cast to it if no value changes; None: that of the first rows.
    side_outputs: names of further streams, perhaps with their schemas; rows go there by `il.side`.
    per:          "row": the code gets a dict for each row, and a dict that it returns is one row.
    key:          column or columns. The code gets `(key, rows)` for each key in a batch: `key.value`, and `key.state`,
                  a dict that is kept for this key. Group by the same columns (`fields_grouping`).
    window:       `il.Tumbling`, `il.Sliding` or `il.Sessions`. The code gets `(window, rows)` when the window is
                  complete; with `key`, for each key, which is in `window.key`. Late rows leave on the stream `late`.
    tick:         seconds between two calls of `tick(seconds)`, where the code is a class; and how exact
                  `key.call_after` is.

    A class may also have `on_event_time(time)`, called when the watermark rises, `on_end()`, and with a key
    `on_timer(key, time)` and `on_timeout(key)`; all return rows as `execute` does. `metrics()` returns numbers by name.
    Each task makes an object of its own. The attributes of the object are its state: plain values (numbers, text,
    lists, dicts, Arrow, numpy, ...) that are kept by themselves. For other state, write `snapshot() -> bytes` and
    `restore(bytes)`.

    >>> import interlace as il
    >>> @il.bolt
    ... def doubled(rows):
    ...     return {"x": [2 * x for x in rows["x"].to_pylist()]}
    >>> doubled(pa.record_batch({"x": [1, 2]}))
    {'x': [2, 4]}
    """
    streams = side_outputs if isinstance(side_outputs, Mapping) else dict.fromkeys(_names(side_outputs))
    columns = _names(key)

    def decorate(code: Callable[..., Any]) -> DecoratedBolt:
        return DecoratedBolt(code, schema, tuple(streams.items()), per, columns, window, tick)

    return decorate if code is None else decorate(code)


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Accept a single name too, which is not a sequence of letters."""
    return (names,) if isinstance(names, str) else tuple(names)
