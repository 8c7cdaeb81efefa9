"""Topologies and joins described in a YAML file.

    name: hot racks
    inputs:
      readings: {event_time: ts, file: readings.csv}
    bolts:
      hot: {map: my_code.hot, parallelism: 2}
      count: {class: my_code.Count, arguments: {least: "${LEAST:-5}"}}
    sinks: [results]
    streams:
      - {from: readings, to: hot, grouping: shuffle}
      - {from: hot, to: count, grouping: {fields: [rack]}}
      - {from: count, to: results, grouping: global}

Joins may stand among the components, with what feeds their streams:

    joins:
      pairs: {sql: "SELECT .. FROM R, S WHERE .. WINDOW ..", inputs: {R: hot, S: {from: count, stream: late}}}

A join alone takes the place of spouts, bolts, sinks and streams:

    join: {sql: "SELECT .. FROM R, S WHERE .. WINDOW ..", event_time: ts, out_of_order: 5 min}
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from interlace.files.csv_columns import type_called
from interlace.files.errors import FileError, did_you_mean
from interlace.files.query_text import read_query
from interlace.yaml_form.document import Entry, read_document
from interlace.yaml_form.imported import ImportPathError, imported

if TYPE_CHECKING:
    from operators import StreamJoin
    from topology import Grouping, Topology

GRAPH = ("spouts", "bolts", "joins", "sinks", "streams", "components")
PART = ("event_time", "out_of_order", "ordering", "step_rows")
JOIN = (*PART, "idle_after")
COMPONENT = ("class", "arguments", "parallelism", "resources")
INPUT = ("file", "event_time", "columns", "idle_after", "out_of_order")
GROUPINGS = ("shuffle", "global", "all", "direct", "local_or_shuffle")
GROUPINGS_OF = ("fields", "partial_key", "custom")


@dataclass(frozen=True)
class TopologyFile:
    """What a file describes.

    target: the join, or the topology.
    paths:  the file of each input that names one.
    """

    target: StreamJoin | Topology
    paths: Mapping[str, str] = field(default_factory=dict)


def read_topology(file: str, environment: Mapping[str, str] | None = None) -> TopologyFile:
    """Read a YAML file; its own folder is searched for the code that it names, and for its data."""
    document = read_document(file, environment)
    folder = os.path.dirname(file)
    if os.path.abspath(folder) not in sys.path:
        sys.path.insert(0, os.path.abspath(folder))
    keys = document.keys(("name", "inputs", "join", *GRAPH))
    inputs = keys["inputs"].entries() if "inputs" in keys and not keys["inputs"].is_null else {}
    paths = {
        name: os.path.join(folder, os.path.expanduser(given["file"].text()))
        for name, entry in inputs.items()
        if "file" in (given := _input_keys(entry))
    }
    if "join" in keys:
        clash = next((keys[name] for name in GRAPH if name in keys), None)
        if clash is not None:
            raise clash.error("a join is a topology of its own: a file holds a join, or components and streams")
        return _join(keys["join"], inputs, paths, folder)
    return TopologyFile(_Graph(keys, inputs).build(), paths)


def _input_keys(entry: Entry) -> dict[str, Entry]:
    return {} if entry.is_null else entry.keys(INPUT)


def _join(entry: Entry, inputs: Mapping[str, Entry], paths: dict[str, str], folder: str) -> TopologyFile:
    from operators import StreamJoin

    keys = entry.keys(("sql", *JOIN), required=("sql",))
    for given in inputs.values():
        for name, value in _input_keys(given).items():
            if name != "file":
                raise value.error(f"write '{name}' of a join below 'join'")
    query = read_query(keys["sql"].text(), paths)
    unknown = next((name for name in inputs if name not in query.paths), None)
    if unknown is not None:
        known = ", ".join(query.paths)
        raise inputs[unknown].error(f"the query has no stream '{unknown}'; its streams: {known}")
    arguments = {name: keys[name].plain() for name in JOIN if name in keys}
    try:
        join = StreamJoin.from_sql(query.text, **arguments)
    except ValueError as error:
        raise keys["sql"].error(query.as_written(str(error))) from None
    found = {stream: os.path.join(folder, path) for stream, path in query.paths.items() if path != stream}
    return TopologyFile(join, {**found, **paths})


def _is_ready(value: Any) -> bool:
    """Whether an imported object is a component or a join itself, and not what makes one."""
    from topology import Component

    return isinstance(value, Component) or (hasattr(value, "as_part") and not isinstance(value, type))


class _Graph:
    """Builds a topology of components."""

    def __init__(self, keys: Mapping[str, Entry], inputs: Mapping[str, Entry]) -> None:
        self._keys = keys
        self._inputs = inputs
        self._objects: dict[str, Any] = {}
        self._entries: dict[str, Entry] = {}

    def build(self) -> Topology:
        from topology import TopologyBuilder, TopologyError

        keys = self._keys
        builder = TopologyBuilder(keys["name"].text() if "name" in keys else "topology")
        for name, entry in self._section("components").items():
            self._objects[name] = self._made(entry, entry.keys(("class", "arguments"), required=("class",)))
        for name, entry in self._inputs.items():
            self._add(name, entry, partial(builder.input, name, self._input(entry)))
        for name, entry in self._section("spouts").items():
            self._add(name, entry, self._adding(builder.spout, name, entry))
        subscriptions: dict[str, Any] = {}
        for name, entry in self._section("bolts").items():
            subscriptions[name] = self._add(name, entry, self._adding(builder.bolt, name, entry))
        for name, entry in self._section("joins").items():
            self._add(name, entry, self._joining(builder.join, name, entry))
        for name, entry in self._sinks().items():
            subscriptions[name] = self._add(name, entry, partial(builder.sink, name))
        for entry in keys["streams"].items() if "streams" in keys else []:
            self._subscribe(entry, subscriptions)
        try:
            return builder.build()
        except TopologyError as error:
            named = re.search(r"component '([^']+)'", str(error))
            place = self._entries.get(named[1]) if named else None
            raise FileError(str(error)) if place is None else place.error(str(error)) from None

    def _section(self, name: str) -> dict[str, Entry]:
        return self._keys[name].entries() if name in self._keys and not self._keys[name].is_null else {}

    def _sinks(self) -> dict[str, Entry]:
        if "sinks" not in self._keys:
            return {}
        return {item.text(): item for item in self._keys["sinks"].items()}

    def _add(self, name: str, entry: Entry, add: Callable[[], Any]) -> Any:
        from operators import JoinError
        from topology import TopologyError

        self._entries[name] = entry
        try:
            return add()
        except (TopologyError, JoinError) as error:
            raise entry.error(str(error)) from None

    def _input(self, entry: Entry) -> Any:
        import pyarrow as pa

        from topology import Input, TopologyError

        keys = _input_keys(entry)
        schema = None
        if "columns" in keys:
            try:
                kinds = [(name, type_called(value.text())) for name, value in keys["columns"].entries().items()]
            except FileError as error:
                raise keys["columns"].error(str(error)) from None
            schema = pa.schema(kinds)
        event_time = keys["event_time"].text() if "event_time" in keys else None
        idle_after = keys["idle_after"].count() if "idle_after" in keys else None
        out_of_order = keys["out_of_order"].plain() if "out_of_order" in keys else None
        try:
            return Input(schema, event_time, idle_after=idle_after, out_of_order=out_of_order)
        except (TopologyError, TypeError) as error:
            raise keys["out_of_order"].error(str(error)) from None

    def _adding(self, add: Callable[..., Any], name: str, entry: Entry) -> Callable[[], Any]:
        """What adds a spout or a bolt, and says what its tasks need."""
        keys = entry.keys(("map", *COMPONENT))
        if ("map" in keys) == ("class" in keys):
            raise entry.error("name a 'class', or with 'map' a function from a batch to a batch")
        component = self._mapped(keys) if "map" in keys else self._made(entry, keys)
        parallelism = keys["parallelism"].count() if "parallelism" in keys else 1

        def adding() -> Any:
            added = add(name, component, parallelism)
            if "resources" in keys:
                wishes = keys["resources"].keys(("cpus", "memory", "labels"))
                added.resources(**{wish: value.plain() for wish, value in wishes.items()})
            return added

        return adding

    def _mapped(self, keys: Mapping[str, Entry]) -> Any:
        from topology import Component, MapBatches

        if "arguments" in keys:
            raise keys["arguments"].error("a function of 'map' takes a batch and nothing else: write a 'class'")
        function = self._imported(keys["map"])
        return function if isinstance(function, Component) else MapBatches(function)  # a Component: made by @il.bolt

    def _joining(self, join: Callable[..., None], name: str, entry: Entry) -> Callable[[], None]:
        """What adds a join that other components feed."""
        keys = entry.keys(("sql", "class", "arguments", "inputs", "results_time", *PART), required=("inputs",))
        if ("sql" in keys) == ("class" in keys):
            raise entry.error("give the 'sql' of the join, or with 'class' a join that is ready")
        made = self._made(entry, keys) if "class" in keys else self._join_of_sql(keys)
        inputs = {stream: self._upstream(value) for stream, value in keys["inputs"].entries().items()}
        times = {} if "results_time" not in keys else {"event_time": keys["results_time"].plain()}
        return lambda: join(name, made, inputs=inputs, **times)

    def _join_of_sql(self, keys: Mapping[str, Entry]) -> Any:
        from operators import StreamJoin

        arguments = {name: keys[name].plain() for name in PART if name in keys}
        try:
            return StreamJoin.from_sql(keys["sql"].text(), **arguments)
        except ValueError as error:
            raise keys["sql"].error(str(error)) from None

    def _upstream(self, entry: Entry) -> Any:
        """What feeds a stream of a join: a component, one of its streams, or several of these."""
        if entry.is_list:
            return [self._upstream(item) for item in entry.items()]
        if not entry.is_mapping:
            return self._producer(entry)
        keys = entry.keys(("from", "stream"), required=("from", "stream"))
        return self._producer(keys["from"]), keys["stream"].text()

    def _producer(self, entry: Entry) -> str:
        named = (name for kind in ("spouts", "bolts", "joins") for name in self._section(kind))
        known = dict.fromkeys([*self._inputs, *named, *self._entries])
        if entry.text() not in known:
            raise entry.error(f"there is no component '{entry.text()}'{did_you_mean(entry.text(), known)}")
        return entry.text()

    def _made(self, entry: Entry, keys: Mapping[str, Entry]) -> Any:
        """An object of a class, with its arguments; one that is ready, as `@il.bolt` makes, is taken as it is."""
        make = self._imported(keys["class"])
        given = keys.get("arguments")
        if _is_ready(make):
            if given is None or given.is_null:
                return make
            if not isinstance(getattr(make, "code", None), type):  # @il.bolt on a class: its objects take arguments
                raise given.error(f"'{keys['class'].text()}' is made already: it takes no arguments")
        try:
            if given is None or given.is_null:
                return make()
            if given.is_list:
                return make(*map(self._argument, given.items()))
            return make(**{name: self._argument(value) for name, value in given.entries().items()})
        except FileError:
            raise
        except Exception as error:
            raise (given or entry).error(f"{type(error).__name__}: {error}") from None

    def _argument(self, entry: Entry) -> Any:
        """A plain value, an object that is described here (`class`), or one described above (`ref`)."""
        if entry.is_list:
            return [self._argument(item) for item in entry.items()]
        if not entry.is_mapping:
            return entry.plain()
        entries = entry.entries()
        if set(entries) == {"ref"}:
            name = entries["ref"].text()
            if name not in self._objects:
                known = did_you_mean(name, self._objects)
                raise entries["ref"].error(f"there is no component '{name}' above{known}")
            return self._objects[name]
        if "class" in entries and set(entries) <= {"class", "arguments"}:
            return self._made(entry, entries)
        return {name: self._argument(value) for name, value in entries.items()}

    def _imported(self, entry: Entry) -> Any:
        try:
            return imported(entry.text())
        except ImportPathError as error:
            raise entry.error(str(error)) from None

    def _subscribe(self, entry: Entry, subscriptions: Mapping[str, Any]) -> None:
        keys = entry.keys(("from", "to", "grouping", "stream"), required=("from", "to", "grouping"))
        producer, consumer = self._producer(keys["from"]), keys["to"].text()
        if consumer not in subscriptions:
            known = did_you_mean(consumer, subscriptions)
            raise keys["to"].error(f"there is no bolt and no sink '{consumer}'{known}")
        stream = {"stream": keys["stream"].text()} if "stream" in keys else {}
        subscriptions[consumer].grouping(producer, self._grouping(keys["grouping"]), **stream)

    def _grouping(self, entry: Entry) -> Grouping:
        from topology import All, Custom, Direct, Fields, Global, LocalOrShuffle, PartialKey, Shuffle

        plain: tuple[Callable[[], Grouping], ...] = (Shuffle, Global, All, Direct, LocalOrShuffle)
        if entry.is_mapping:
            keys = entry.keys(GROUPINGS_OF)
            if len(keys) == 1:
                ((kind, value),) = keys.items()
                match kind:
                    case "fields":
                        return Fields(value.texts())
                    case "partial_key":
                        return PartialKey(value.texts())
                return Custom(self._imported(value))
        else:
            name = entry.text()
            if name in GROUPINGS:
                return dict(zip(GROUPINGS, plain, strict=True))[name]()
        forms = f"{', '.join(GROUPINGS)}, {{fields: [a]}}, {{partial_key: [a]}} or {{custom: module.function}}"
        raise entry.error(f"this is not a grouping: write {forms}")
