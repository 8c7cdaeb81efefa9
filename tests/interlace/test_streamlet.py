"""Topologies as chains of calls."""

from __future__ import annotations

import doctest
import sys
from typing import Any

import pyarrow.compute as pc
import pytest

import interlace as il
from interlace.testing import run


def test_a_chain_filters_joins_and_counts_in_windows() -> None:
    quotes = il.source("quotes", event_time="ts")
    chain = (
        il.source("orders", event_time="ts")
        .filter(pc.field("size") > 10, parallelism=2)
        .join(quotes, "orders.symbol = quotes.symbol", il.TimeWindow(5), select=["orders.symbol", "quotes.price"])
        .window(
            il.Tumbling("event_time", 10),
            lambda window, rows: {"symbol": window.key, "end": window.end, "n": rows.num_rows},
            key="orders.symbol",
            parallelism=2,
            event_time="end",
        )
    )
    rows = {
        "orders": {"ts": [3, 4, 12], "symbol": ["A", "A", "A"], "size": [5, 15, 20]},
        "quotes": {"ts": [1, 2, 9], "symbol": ["A", "B", "A"], "price": [10, 20, 12]},
    }
    for seed in range(3):
        emitted = run(chain.sink(), rows, seed=seed)
        assert emitted["results"].to_pylist() == [
            {"symbol": "A", "end": 10, "n": 2},
            {"symbol": "A", "end": 20, "n": 1},
        ]
        assert emitted["orders-filter"].num_rows == 2
        assert emitted["orders_quotes"].num_rows == 3
    assert chain.event_time == "end"


def test_the_chain_means_what_its_parts_mean() -> None:
    topology = il.source("in").map(lambda rows: {"x": rows["x"]}).map(lambda rows: rows).sink("out", topology="named")
    assert (topology.name, [node.name for node in topology.nodes]) == ("named", ["in", "in-map", "in-map-2", "out"])


def test_one_streamlet_may_be_used_twice() -> None:
    numbers = il.source("numbers", event_time="t")
    squares = numbers.map(lambda rows: {"t": rows["t"], "square": pc.multiply(rows["x"], rows["x"])})
    chain = numbers.bolt(lambda rows: rows, event_time="t").join(
        il.Streamlet("squares", "t", squares.add), "numbers.x = squares.square", il.TimeWindow(10)
    )
    emitted = run(chain.sink(), {"numbers": {"t": [1, 2, 3], "x": [2, 3, 4]}})
    assert emitted["results"].select(["numbers.x", "squares.square"]).to_pylist() == [
        {"numbers.x": 4, "squares.square": 4}
    ]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: il.source(""), "a source needs a name"),
        (
            lambda: il.source("a", [1]),  # type: ignore[arg-type]
            r"^source 'a': rows must be a spout, such as il\.from_iterable\(\.\.\.\), not list$",
        ),
        (lambda: il.source("a").filter("x > 3"), r"filter takes a function .* not 'x > 3'"),
        (lambda: il.source("a").join("b", "a.x = b.x", il.CountWindow(1)), "joins another streamlet"),  # type: ignore[arg-type]
        (
            lambda: il.source("a", event_time="t").join(
                il.source("b", event_time="t").join(
                    il.source("a", event_time="t"), "a.x = b.x", il.CountWindow(1), name="c"),
                "a.x = c.event_time", il.CountWindow(1)).sink(),
            "two sources are called 'a'",
        ),
    ],
)  # fmt: skip
def test_chains_that_cannot_work_are_refused(make: Any, said: str) -> None:
    with pytest.raises(il.TopologyError, match=said):
        make()


def test_the_examples_of_the_docstrings_run() -> None:
    tried = doctest.testmod(sys.modules[il.source.__module__])
    assert tried.attempted
    assert not tried.failed
