"""Boxes and lanes of a picture: apart, in layers, and no edge behind a box."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from topology.graph.layers import Layout, lay_out

LANE, GAP = 10.0, 26.0


def check(layout: Layout, edges: list[tuple[str, str]]) -> None:
    for layer in layout.layers:
        for left, right in pairwise(layer):
            assert right.x - right.width / 2 - (left.x + left.width / 2) >= GAP - 1e-6
        assert all(slot.x - slot.width / 2 >= -1e-6 for slot in layer)
        assert all(slot.x + slot.width / 2 <= layout.width + 1e-6 for slot in layer)
    assert list(layout.routes) == edges
    for (producer, consumer), route in layout.routes.items():
        assert (route[0].name, route[-1].name) == (producer, consumer)
        assert [slot.layer for slot in route] == list(range(route[0].layer, route[-1].layer + 1))
        assert all(slot.is_lane for slot in route[1:-1])


def test_a_box_stands_below_its_producers_and_an_edge_over_two_layers_has_a_lane() -> None:
    edges = [("R", "gate"), ("S", "gate"), ("gate", "router"), ("gate", "join"), ("router", "join")]
    layout = lay_out(dict.fromkeys(("R", "S", "gate", "router", "join"), 100.0), edges, LANE, GAP)
    check(layout, edges)
    assert {name: box.layer for name, box in layout.boxes.items()} == {
        "R": 0,
        "S": 0,
        "gate": 1,
        "router": 2,
        "join": 3,
    }
    assert [len(layer) for layer in layout.layers] == [2, 1, 2, 1]
    assert layout.boxes["gate"].x == pytest.approx((layout.boxes["R"].x + layout.boxes["S"].x) / 2)


def test_crossings_that_can_be_avoided_are() -> None:
    edges = [("a", "x"), ("b", "y"), ("c", "z")]
    layout = lay_out(dict.fromkeys(("a", "b", "c", "z", "y", "x"), 50.0), edges, LANE, GAP)
    check(layout, edges)
    assert [slot.name for slot in layout.layers[1]] == ["x", "y", "z"]


@pytest.mark.parametrize("seed", range(20))
def test_any_graph_is_laid_out(seed: int) -> None:
    chance = random.Random(seed)
    names = [str(number) for number in range(chance.randint(1, 14))]
    edges = [(names[a], names[b]) for b in range(len(names)) for a in range(b) if chance.random() < 0.3]
    check(lay_out({name: chance.uniform(20, 200) for name in names}, edges, LANE, GAP), edges)
