"""Topologies as chains of calls, in the manner of Heron's Streamlets.

    il.source("clicks", event_time="ts").filter(...).window(...).sink()

Each call returns a new streamlet: a stream of rows that is described, and runs nothing. `sink` makes the topology of
everything that leads there. What has several sinks, or needs a grouping of its own, is written with `TopologyBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from operators import StreamJoin
from topology import DEFAULT_STREAM, Bolt, Input, Spout, Subscriptions, Topology, TopologyBuilder, TopologyError, bolt


class _Assembly:
    """The builder, and what has been added to it so far."""

    def __init__(self, name: str) -> None:
        self.builder = TopologyBuilder(name)
        self._made: dict[int, tuple[str, str]] = {}
        self._names: set[str] = set()

    def of(self, streamlet: Streamlet) -> tuple[str, str]:
        """The component and the stream of a streamlet, which is added once."""
        if id(streamlet) not in self._made:
            self._made[id(streamlet)] = streamlet.add(self)
        return self._made[id(streamlet)]

    def named(self, wanted: str) -> str:
        """A name that no component has."""
        name, number = wanted, 2
        while name in self._names:
            name, number = f"{wanted}-{number}", number + 1
        self._names.add(name)
        return name


@dataclass(frozen=True, eq=False)
class Streamlet:
    """A stream of rows, with a name that conditions of joins use.

    name:       stays the same through `filter`, `map` and `bolt`.
    event_time: the column with the event time, which joins and windows need; None: there is none.
    """

    name: str
    event_time: str | None
    add: Callable[[_Assembly], tuple[str, str]] = field(repr=False)

    def filter(self, condition: Callable[[pa.RecordBatch], Any] | pc.Expression, *, parallelism: int = 1) -> Streamlet:
        """Keep the rows for which a condition is true: a function of a batch to a mask, or `pc.field("x") > 5`."""
        if not (callable(condition) or isinstance(condition, pc.Expression)):
            raise TopologyError(
                f"streamlet '{self.name}': filter takes a function of a batch, or an expression of Arrow such as "
                f"pyarrow.compute.field('x') > 5, not {condition!r}"
            )

        def kept(rows: pa.RecordBatch) -> pa.RecordBatch:
            mask = condition if isinstance(condition, pc.Expression) else condition(rows)
            return rows.filter(mask if isinstance(mask, pc.Expression | pa.Array) else pa.array(mask))

        return self._then("filter", bolt(kept), parallelism)

    def map(self, function: Callable[[pa.RecordBatch], Any], *, parallelism: int = 1) -> Streamlet:
        """Replace each batch by what a function returns for it, of all that `il.bolt` allows; event times stay."""
        return self._then("map", bolt(function), parallelism)

    def bolt(
        self, component: Any, *, parallelism: int = 1, key: str | Iterable[str] = (), event_time: str | None = None
    ) -> Streamlet:
        """Send the rows through any bolt; with `key`, rows that agree in these columns go to the same task.

        event_time: the column of its results; None: the same as before.
        """
        if not isinstance(component, Bolt):
            component = bolt(component)
        return self._then("bolt", component, parallelism, _names(key), event_time)

    def window(
        self,
        windowing: Any,
        function: Callable[..., Any],
        *,
        key: str | Iterable[str] = (),
        parallelism: int = 1,
        event_time: str | None = None,
    ) -> Streamlet:
        """Give a function each window when it is complete, as `il.bolt(window=, key=)` does.

        event_time: the column of its results, made of `window.end`; None: they have none.
        """
        columns = _names(key)
        made = bolt(window=windowing, key=columns)(function)
        return self._then("window", made, parallelism if columns else 1, columns, event_time, keeps_time=False)

    def join(
        self,
        other: Streamlet,
        on: Any,
        window: Any,
        *,
        name: str | None = None,
        event_time: str | None = "later",
        **options: Any,
    ) -> Streamlet:
        """Join with another streamlet: `on` and `window` as for `StreamJoin`, with the streamlets' names as streams.

        name:       that of the result; None: both names with `_` between them.
        event_time: that of the results, as for `TopologyBuilder.join`; their column is `event_time`.
        options:    further arguments of `StreamJoin`.
        """
        if not isinstance(other, Streamlet):
            raise TopologyError(f"streamlet '{self.name}' joins another streamlet, not {type(other).__name__}")
        columns = {each.name: each.event_time for each in (self, other) if each.event_time is not None}
        join = StreamJoin(self.name, other.name, on, window, event_time=columns or None, **options)
        joined = name or f"{self.name}_{other.name}"

        def add(assembly: _Assembly) -> tuple[str, str]:
            inputs = {self.name: assembly.of(self), other.name: assembly.of(other)}
            part = assembly.named(joined)
            assembly.builder.join(part, join, inputs=inputs, event_time=event_time)
            return part, DEFAULT_STREAM

        return Streamlet(joined, None if event_time is None else "event_time", add)

    def sink(self, name: str = "results", *, topology: str | None = None) -> Topology:
        """End here: return the topology of everything that leads to this streamlet, with one sink.

        topology: its name; None: that of the streamlet.
        """
        assembly = _Assembly(topology or self.name)
        component, stream = assembly.of(self)
        assembly.builder.sink(name).global_grouping(component, stream)
        return assembly.builder.build()

    def _then(
        self,
        what: str,
        component: Bolt,
        parallelism: int,
        key: tuple[str, ...] = (),
        event_time: str | None = None,
        keeps_time: bool = True,
    ) -> Streamlet:
        def add(assembly: _Assembly) -> tuple[str, str]:
            producer, stream = assembly.of(self)
            name = assembly.named(f"{self.name}-{what}")
            added: Subscriptions = assembly.builder.bolt(name, component, parallelism)
            if key:
                added.fields_grouping(producer, *key, stream=stream)
            else:
                added.shuffle_grouping(producer, stream)
            return name, DEFAULT_STREAM

        return Streamlet(self.name, event_time or (self.event_time if keeps_time else None), add)


def source(
    name: str,
    rows: Spout | None = None,
    *,
    event_time: str | None = None,
    schema: pa.Schema | None = None,
    out_of_order: int | float | None = None,
    idle_after: float | None = None,
) -> Streamlet:
    """Begin a chain: an input that programs send rows to, or with `rows` a spout.

    The other arguments are those of `Input`.

    >>> import interlace as il
    >>> warm = il.source("readings").filter(lambda rows: [x > 20 for x in rows["celsius"].to_pylist()])
    >>> il.testing.run(warm.sink(), {"readings": {"celsius": [19, 25]}})["results"].to_pydict()
    {'celsius': [25]}
    """
    if not isinstance(name, str) or not name:
        raise TopologyError(f"a source needs a name, not {name!r}")
    if rows is not None and not isinstance(rows, Spout):
        raise TopologyError(
            f"source '{name}': rows must be a spout, such as il.from_iterable(...), not {type(rows).__name__}"
        )

    def add(assembly: _Assembly) -> tuple[str, str]:
        component = assembly.named(name)
        if component != name:
            raise TopologyError(f"two sources are called '{name}': rename one, or use one streamlet twice")
        if rows is None:
            described = Input(schema, event_time, out_of_order=out_of_order, idle_after=idle_after)
            assembly.builder.input(component, described)
        else:
            assembly.builder.spout(component, rows)
        return component, DEFAULT_STREAM

    return Streamlet(name, event_time, add)


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
