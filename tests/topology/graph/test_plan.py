"""The plan shows the components and edges, as text and as a picture, without running anything."""

from collections.abc import Mapping
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from tests.topology.graph.pictures import SVG, edges_behind_boxes
from topology import Bolt, Input, MapBatches, Task, TaskContext, Topology, TopologyBuilder


def upper(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


class Explodes(Bolt):
    """A component that must not be built for a plan."""

    def build(self, context: TaskContext) -> Task:
        raise AssertionError("a plan runs nothing")


class TwoStreams(Explodes):
    """A component with two outputs."""

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {"odd": None, "even": None}


@pytest.fixture
def topology() -> Topology:
    builder = TopologyBuilder('flow <&> "quotes"')
    builder.input("in & out", Input(event_time="ts"))
    builder.bolt("upper", MapBatches(upper), parallelism=3).shuffle_grouping("in & out")
    builder.bolt("join", Explodes(), parallelism=2).fields_grouping("upper", "a<b").all_grouping("in & out")
    builder.sink().global_grouping("join")
    return builder.build()


def test_the_logical_plan_shows_components_streams_and_groupings(topology: Topology) -> None:
    assert topology.plan().logical() == (
        "topology 'flow <&> \"quotes\"': 4 components\n"
        "  in & out [Input]  (event time: ts)\n"
        "  upper x3 [MapBatches]  (upper)\n"
        "    <- in & out.default by shuffle\n"
        "  join x2 [Explodes]\n"
        "    <- upper.default by fields(a<b)\n"
        "    <- in & out.default by all\n"
        "  results [Sink]\n"
        "    <- join.default by global"
    )


def test_the_physical_plan_shows_tasks_and_channels(topology: Topology) -> None:
    assert topology.plan().physical() == (
        "physical: 7 tasks, 13 channels\n"
        "  in & out[0..0] -> upper[0..2]: 3 channels\n"
        "  upper[0..2] -> join[0..1]: 6 channels\n"
        "  in & out[0..0] -> join[0..1]: 2 channels\n"
        "  join[0..1] -> results[0..0]: 2 channels"
    )


def test_printing_a_plan_shows_both(topology: Topology) -> None:
    plan = topology.plan()
    assert str(plan) == f"{plan.logical()}\n\n{plan.physical()}"


def test_the_picture_is_well_formed_and_complete(topology: Topology) -> None:
    picture = ElementTree.fromstring(topology.plan().svg())
    assert picture.tag == f"{SVG}svg"
    names = [text.text for text in picture.iter(f"{SVG}text")]
    assert names == ["in & out", "Input", "upper x3", "MapBatches", "join x2", "Explodes", "results", "Sink"]
    edges = [path for path in picture.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(edges) == 4


def test_boxes_lie_inside_the_picture_and_apart(topology: Topology) -> None:
    picture = ElementTree.fromstring(topology.plan().svg())
    boxes = [
        tuple(float(box.get(name, "")) for name in ("x", "y", "width", "height")) for box in picture.iter(f"{SVG}rect")
    ]
    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    assert all(x >= 0 and x + w <= width and y >= 0 and y + h <= height for x, y, w, h in boxes)
    assert len({(x, y) for x, y, _, _ in boxes}) == len(boxes)


def test_no_edge_runs_behind_a_box(topology: Topology) -> None:
    assert edges_behind_boxes(topology.plan().svg()) == []


def test_the_picture_is_never_wider_than_its_cell(topology: Topology) -> None:
    picture = ElementTree.fromstring(topology.plan().svg())
    assert picture.get("viewBox") == f"0 0 {picture.get('width')} {picture.get('height')}"
    assert picture.get("style") == "max-width:100%;height:auto"


def test_streams_between_two_components_share_a_line() -> None:
    builder = TopologyBuilder("two streams")
    builder.input("in")
    builder.bolt("two", TwoStreams()).shuffle_grouping("in")
    builder.sink().global_grouping("two", "odd").global_grouping("two", "even")
    picture = ElementTree.fromstring(builder.build().plan().svg())
    edges = [path for path in picture.iter(f"{SVG}path") if path.get("marker-end")]
    shown = [title.text for edge in edges for title in edge.iter(f"{SVG}title")]
    assert shown == ["in to two\ndefault by shuffle", "two to results\nodd by global\neven by global"]


def test_pictures_of_one_page_do_not_share_names(topology: Topology) -> None:
    builder = TopologyBuilder("another")
    builder.input("in")
    ids = {
        marker.get("id")
        for each in (topology, builder.build())
        for marker in ElementTree.fromstring(each.plan().svg()).iter(f"{SVG}marker")
    }
    assert len(ids) == 2


def test_a_notebook_gets_the_picture(topology: Topology) -> None:
    assert topology.plan()._repr_html_() == topology.plan().svg()
