"""Topologies in YAML: what they describe, and messages that name line and key."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from interlace.files.errors import FileError
from interlace.yaml_form.topology_file import read_topology
from operators import StreamJoin
from topology import Custom, Fields, Global, LocalRuntime, PartialKey, Shuffle, Topology

CODE = """
from dataclasses import dataclass
import interlace as il
import pyarrow as pa

@dataclass(frozen=True)
class Limit:
    least: float

@dataclass(frozen=True)
class Above(il.Bolt):
    limit: Limit
    columns: tuple = ()

    def build(self, context):
        least = self.limit.least
        return il.MapBatches(lambda rows: rows.filter(pa.compute.greater(rows["power"], least))).build(context)

@dataclass(frozen=True)
class Numbers(il.Spout):
    count: int

    def build(self, context):
        raise NotImplementedError

def twice(rows):
    return pa.record_batch({"rack": rows["rack"], "power": pa.compute.multiply(rows["power"], 2)})

def first(rows, tasks):
    return [0] * rows.num_rows

@il.bolt(key="rack")
def count(key, rows):
    key.state["n"] = key.state.get("n", 0) + rows.num_rows
    return {"rack": key.value, "n": key.state["n"]}

@il.bolt
class Least:
    def __init__(self, least=5.0):
        self.least = least

    def execute(self, rows):
        return rows.filter(pa.compute.greater(rows["power"], self.least))

ready = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(5), select=["R.x", "S.x"])
"""
GOOD = """\
name: hot racks
components:
  limit: {class: yaml_code.Limit, arguments: {least: "${LEAST:-5}"}}
inputs:
  readings: {file: readings.csv, columns: {rack: int64, power: double}}
spouts:
  numbers: {class: yaml_code.Numbers, arguments: [3], parallelism: 2, resources: {cpus: 2}}
bolts:
  twice: {map: yaml_code.twice, parallelism: 2}
  above:
    class: yaml_code:Above
    arguments: {limit: {ref: limit}, columns: [a, b]}
  others: {class: yaml_code.Above, arguments: {limit: {class: yaml_code.Limit, arguments: [1]}}}
sinks: [results, rest]
streams:
  - {from: readings, to: twice, grouping: {fields: rack}}
  - {from: twice, to: above, grouping: shuffle}
  - {from: twice, to: others, grouping: {partial_key: [rack]}}
  - {from: above, to: results, grouping: global}
  - {from: others, to: rest, grouping: global}
  - {from: numbers, to: rest, grouping: {custom: yaml_code.first}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "yaml_code.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("yaml_code", None)


def described(folder: Path, text: str, **environment: str) -> Topology:
    (folder / "topology.yaml").write_text(text)
    found = read_topology("topology.yaml", environment).target
    assert isinstance(found, Topology)
    return found


def test_components_arguments_and_streams_are_read(folder: Path) -> None:
    topology = described(folder, GOOD)
    assert topology.name == "hot racks"
    assert [(node.name, node.parallelism) for node in topology.nodes if node.parallelism > 1] == [
        ("numbers", 2),
        ("twice", 2),
    ]
    assert topology.inputs["readings"].schema == pa.schema([("rack", pa.int64()), ("power", pa.float64())])
    assert topology.node("above").component.limit.least == 5  # type: ignore[attr-defined]
    assert topology.node("above").component.columns == ["a", "b"]  # type: ignore[attr-defined]
    assert topology.node("others").component.limit.least == 1  # type: ignore[attr-defined]
    assert topology.node("numbers").resources.cpus == 2
    groupings = {(edge.producer, edge.consumer): type(edge.grouping) for edge in topology.edges}
    assert groupings == {
        ("readings", "twice"): Fields,
        ("twice", "above"): Shuffle,
        ("twice", "others"): PartialKey,
        ("above", "results"): Global,
        ("others", "rest"): Global,
        ("numbers", "rest"): Custom,
    }
    assert read_topology("topology.yaml", {}).paths == {"readings": "readings.csv"}
    assert read_topology(str(folder / "topology.yaml"), {}).paths == {"readings": str(folder / "readings.csv")}


def test_variables_of_the_environment_are_filled_in(folder: Path) -> None:
    topology = described(folder, GOOD, LEAST="7.5")
    assert topology.node("above").component.limit.least == 7.5  # type: ignore[attr-defined]
    topology = described(folder, GOOD.replace("name: hot racks", "name: racks of ${WHO}"), WHO="ann: 1")
    assert topology.name == "racks of ann: 1"
    with pytest.raises(FileError, match=r"line 1, name: the environment has no variable WHO"):
        described(folder, GOOD.replace("name: hot racks", "name: racks of ${WHO}"))


def test_what_is_described_runs(folder: Path) -> None:
    text = (
        GOOD.partition("spouts:")[0] + "bolts:\n  above: {class: yaml_code.Above, arguments: {limit: {ref: limit}}}\n"
    )
    text += "sinks: [results]\nstreams:\n"
    text += "  - {from: readings, to: above, grouping: shuffle}\n  - {from: above, to: results, grouping: global}\n"
    with LocalRuntime().launch(described(folder, text)) as running:
        running.send("readings", pa.table({"rack": [1, 2], "power": [4.0, 6.0]}))
        running.finish()
        assert [row for rows in running.results() for row in rows.to_pylist()] == [{"rack": 2, "power": 6.0}]


def run(topology: Topology, **rows: dict[str, list[float]]) -> list[dict[str, object]]:
    with LocalRuntime().launch(topology) as running:
        for name, columns in rows.items():
            running.send(name, pa.table(columns))
        running.finish()
        return [row for found in running.results() for row in found.to_pylist()]


@pytest.mark.parametrize("key", ["class", "map"])
def test_a_decorated_bolt_is_taken_as_it_is_with_its_key(folder: Path, key: str) -> None:
    text = f"inputs: {{readings: }}\nbolts:\n  count: {{{key}: yaml_code.count, parallelism: 2}}\nsinks: [results]\n"
    text += "streams:\n  - {from: readings, to: count, grouping: {fields: rack}}\n"
    text += "  - {from: count, to: results, grouping: global}\n"
    topology = described(folder, text)
    assert topology.node("count").component.key == ("rack",)  # type: ignore[attr-defined]
    found = run(topology, readings={"rack": [1, 2, 1], "power": [1.0, 2.0, 3.0]})
    assert sorted(map(str, found)) == ["{'rack': 1, 'n': 2}", "{'rack': 2, 'n': 1}"]
    if key == "class":
        with pytest.raises(FileError, match=r"arguments: 'yaml_code.count' is made already: it takes no arguments"):
            described(folder, text.replace("yaml_code.count,", "yaml_code.count, arguments: [1],"))


@pytest.mark.parametrize(("arguments", "kept"), [("", [6.0]), (", arguments: {least: 3}", [4.0, 6.0])])
def test_a_decorated_class_takes_arguments(folder: Path, arguments: str, kept: list[float]) -> None:
    text = f"inputs: {{readings: }}\nbolts:\n  least: {{class: yaml_code.Least{arguments}}}\nsinks: [results]\n"
    text += "streams:\n  - {from: readings, to: least, grouping: global}\n"
    text += "  - {from: least, to: results, grouping: global}\n"
    assert [row["power"] for row in run(described(folder, text), readings={"power": [4.0, 6.0, 1.0]})] == kept


JOINED = """\
inputs: {a: {event_time: t, out_of_order: 4}, b: {event_time: t}}
bolts:
  same: {map: yaml_code.same}
joins:
  near:
    sql: "SELECT R.x, S.x FROM R, S WHERE R.x < S.x WINDOW AS (ROWS 5)"
    out_of_order: {R: 4}
    event_time: t
    inputs: {R: same, S: {from: b, stream: default}}
sinks: [results, late]
streams:
  - {from: a, to: same, grouping: global}
  - {from: near, to: results, grouping: global}
  - {from: near, stream: late, to: late, grouping: global}
"""


def test_a_join_stands_among_components_and_an_input_may_be_out_of_order(folder: Path) -> None:
    (folder / "yaml_code.py").write_text(CODE + "\ndef same(rows):\n    return rows\n")
    topology = described(folder, JOINED)
    assert topology.inputs["a"].out_of_order == 4
    with LocalRuntime().launch(topology) as running:
        running.send("a", pa.table({"t": [10, 8], "x": [1, 2]}))
        running.send("b", pa.table({"t": [9, 11], "x": [2, 3]}))
        running.finish()
        found = [row for rows in running.results("results") for row in rows.to_pylist()]
    assert sorted((row["R.x"], row["S.x"]) for row in found) == [(1, 2), (1, 3), (2, 3)]
    assert "event_time" in found[0]
    untimed = described(
        folder, JOINED.replace("event_time: t\n    inputs", "event_time: t\n    results_time: null\n    inputs")
    )
    assert "near/gate" in [node.name for node in untimed.nodes]


def test_a_join_that_is_ready_is_taken_by_its_path(folder: Path) -> None:
    text = "inputs: {a: , b: }\njoins:\n  pairs: {class: yaml_code.ready, inputs: {R: a, S: [b]}, results_time: null}\n"
    text += "sinks: [results]\nstreams:\n  - {from: pairs, to: results, grouping: global}\n"
    assert run(described(folder, text), a={"x": [1, 5]}, b={"x": [2, 3]}) == [
        {"R.x": 1, "S.x": 2},
        {"R.x": 1, "S.x": 3},
    ]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("R: same", "R: smae", "line 9, joins.near.inputs.R: there is no component 'smae'; did you mean same?"),
        ("{from: b, stream: default}", "{from: b}", "line 9, joins.near.inputs.S: the key 'stream' is missing"),
        ("R.x < S.x WINDOW", "R.x + S.x WINDOW", "line 6, joins.near.sql: `R.x + S.x`"),
        (
            "{R: same, S: {from: b, stream: default}}",
            "{R: same}",
            "line 5, joins.near: join 'near': nothing feeds its stream 'S'",
        ),
        (
            "    sql:",
            "    class: yaml_code.ready\n    sql:",
            "line 5, joins.near: give the 'sql' of the join, or with 'class'",
        ),
        (
            "event_time: t\n    inputs",
            "event_time: t\n    results_time: T\n    inputs",
            "line 5, joins.near: event_time must be 'later', 'R', 'S'",
        ),
        ("out_of_order: 4", "out_of_order: soon", "line 1, inputs.a.out_of_order: "),
    ],
)
def test_a_mistake_in_a_part_is_named_by_line_and_key(folder: Path, before: str, after: str, message: str) -> None:
    (folder / "yaml_code.py").write_text(CODE + "\ndef same(rows):\n    return rows\n")
    assert before in JOINED
    with pytest.raises(FileError) as raised:
        described(folder, JOINED.replace(before, after, 1))
    assert message in str(raised.value)


def test_a_join_is_sql(folder: Path) -> None:
    query = "SELECT a.id, S.id FROM 'r.csv' a, S WHERE a.x < S.x WINDOW AS (INTERVAL '5 min')"
    settings = "event_time: ts, out_of_order: {r: 1 min}, ordering: outer"
    (folder / "join.yaml").write_text(f'join: {{sql: "{query}", {settings}}}\ninputs:\n  S: {{file: data/s.csv}}\n')
    found = read_topology("join.yaml")
    assert isinstance(found.target, StreamJoin)
    assert found.target.stream_names == ("r", "S")
    assert found.target.event_time == "ts"
    assert list(found.target.resolved.bounds) == ["r"]
    assert found.paths == {"r": "r.csv", "S": "data/s.csv"}


IN_TWICE = "line 9, bolts.twice"
MISTAKES = [
    ("bolts:\n", "blots:\n", "line 8, blots: 'blots' is not a key here; did you mean bolts?"),
    ("parallelism: 2}\n  above", "parallelism: two}\n  above", f"{IN_TWICE}.parallelism: write a whole number"),
    ("yaml_code.twice", "yaml_code.twcie", f"{IN_TWICE}.map: module 'yaml_code' has no 'twcie'; did you mean twice?"),
    ("yaml_code.twice", "nowhere.twice", f"{IN_TWICE}.map: there is no module 'nowhere'"),
    ("yaml_code.twice", "twice", f"{IN_TWICE}.map: 'twice' is not an import path"),
    ("map: yaml_code.twice,", "", f"{IN_TWICE}: name a 'class', or with 'map' a function"),
    ("grouping: {fields: rack}", "grouping: {fields: rakc}", f"{IN_TWICE}: component 'twice' groups stream"),
    ("{ref: limit}", "{ref: limits}", "line 12, bolts.above.arguments.limit.ref: there is no component 'limits' above"),
    ("{limit: {ref: limit}, columns", "{columns", "line 12, bolts.above.arguments: TypeError"),
    ("  - {from: twice, to: above, grouping: shuffle}\n", "", "line 10, bolts.above: component 'above' subscribes to"),
    ("{from: twice, to: above", "{from: twcie, to: above", "line 17, streams.1.from: there is no component 'twcie'"),
    ("to: above", "to: abuve", "line 17, streams.1.to: there is no bolt and no sink 'abuve'"),
    ("grouping: shuffle", "grouping: shufle", "line 17, streams.1.grouping: this is not a grouping"),
    ("to: twice, ", "", "line 16, streams.0: the key 'to' is missing"),
    ("sinks: [results, rest]", "sinks: results", "line 14, sinks: write a list here"),
    ("rack: int64", "rack: whole", "line 5, inputs.readings.columns: 'whole' is not a type"),
    ("resources: {cpus: 2}", "resources: {cpu: 2}", "line 7, spouts.numbers.resources.cpu: 'cpu' is not a key here"),
    ("resources: {cpus: 2}", "resources: {cpus: -1}", "line 7, spouts.numbers: component 'numbers'"),
    ("sinks:", "name: again\nsinks:", "line 14, name: this key stands twice"),
    ("sinks:", "join: {sql: SELECT}\nsinks:", "line 6, spouts: a join is a topology of its own"),
    ("name: hot racks", "name: [hot", "line 2: this is not YAML"),
]


@pytest.mark.parametrize(("before", "after", "message"), MISTAKES)
def test_a_mistake_is_named_by_line_and_key(folder: Path, before: str, after: str, message: str) -> None:
    changed = GOOD.replace(before, after, 1)
    assert changed != GOOD
    with pytest.raises(FileError) as raised:
        described(folder, changed)
    assert message in str(raised.value)


SQL = "join:\n  sql: SELECT R.a FROM R, S WHERE R.a < S.a"
JOINS = [
    ("join: {event_time: ts}", "line 1, join: the key 'sql' is missing"),
    (SQL.replace("<", "+") + " WINDOW AS (ROWS 5)", "line 2, join.sql: `R.a + S.a`"),
    (SQL, "line 2, join.sql: the join has no window"),
    (SQL + " WINDOW AS (ROWS 5)\ninputs: {T: }", "line 3, inputs.T: the query has no stream 'T'"),
    (SQL + "\ninputs: {R: {event_time: ts}}", "line 3, inputs.R.event_time: write 'event_time' of a join below"),
    ("", "is empty"),
]


@pytest.mark.parametrize(("text", "message"), JOINS)
def test_a_mistake_in_a_join_is_named_by_line_and_key(folder: Path, text: str, message: str) -> None:
    with pytest.raises(FileError) as raised:
        described(folder, text)
    assert message in str(raised.value)
