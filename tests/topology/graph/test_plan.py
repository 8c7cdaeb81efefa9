"""The plan shows the components and edges, as text and as a picture, without running anything."""

from xml.etree import ElementTree

import pyarrow as pa
import pytest

from topology import Bolt, Input, MapBatches, Task, TaskContext, Topology, TopologyBuilder

SVG = "{http://www.w3.org/2000/svg}"


def upper(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


class Explodes(Bolt):
    """A component that must not be built for a plan."""

    def build(self, context: TaskContext) -> Task:
        raise AssertionError("a plan runs nothing")


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


def test_a_notebook_gets_the_picture(topology: Topology) -> None:
    assert topology.plan()._repr_html_() == topology.plan().svg()
