"""explain(): what a user reads about a join before and after it has run."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from operators import CountWindow, IndexJoin, JoinRun, RunningJoin, SPOJoin, StreamJoin, TimeWindow
from tests.operators.surface_check import ENGINES
from tests.topology.graph.pictures import edges_behind_boxes

ROWS = pa.table({"id": range(40), "k": [i % 4 for i in range(40)], "x": [float(i * 7 % 11) for i in range(40)]})


def section(join: StreamJoin | JoinRun | RunningJoin, name: str) -> str:
    return "\n".join(line for title, lines in join.explain().sections if title == name for line in lines)


def test_each_part_of_the_condition_says_where_it_is_tested_and_why() -> None:
    on = "R.k = S.k AND R.x < S.x AND R.id > 3 AND R.x * R.x < S.x"
    search = section(StreamJoin("R", "S", on, CountWindow(9)), "search")
    assert "R.k = S.k: by keys, finds one value" in search
    assert "R.x < S.x: by keys, finds a range" in search
    assert "R.id > 3: once per row of R" in search
    assert "R.x * R.x < S.x: on the pairs found, since `R.x * R.x` is not linear" in search


def test_alternatives_are_searched_one_by_one_and_leave_out_what_was_found() -> None:
    join = StreamJoin("R", "S", "R.x < S.x OR R.k = S.k", CountWindow(9))
    assert "R.x < S.x: by keys" in section(join, "search 1")
    assert "without the pairs already found: NOT (R.x < S.x)" in section(join, "search 2")


def test_more_than_two_comparisons_are_ordered_by_what_the_first_rows_show() -> None:
    on = "R.k = S.k AND R.x < S.x AND R.id > S.id"
    assert "decided with the first rows" in section(StreamJoin("R", "S", on, CountWindow(9)), "search")


def test_the_engine_is_named_with_the_reason_or_as_asked_for() -> None:
    on = "abs(R.x - S.x) <= 1"
    assert "IndexJoin, since one column" in section(StreamJoin("R", "S", on, CountWindow(9)), "engine")
    asked = StreamJoin("R", "S", on, CountWindow(9), using=IndexJoin(index="BPlusTree"))
    assert "asked for" in section(asked, "engine")
    assert "BPlusTree" in section(asked, "elements")


def test_the_state_is_estimated_from_windows_and_schemas() -> None:
    join = StreamJoin("R", "S", "R.x < S.x", (CountWindow(1_000_000), CountWindow(10)), select=["R.id", "S.id"])
    assert "R: the last 1,000,000 rows" in section(join, "state")
    known = str(join.explain({"R": ROWS.schema, "S": ROWS.schema}))
    assert "about 80 bytes a row\n" in known
    assert "together about 76 MiB" in known
    assert "rows of the last 5" in section(StreamJoin("R", "S", "R.x < S.x", TimeWindow(5)), "state")


def test_after_a_run_it_shows_what_was_observed() -> None:
    join = StreamJoin("R", "S", "R.x < S.x AND R.x * R.x < S.x", CountWindow(9))
    assert "observed" not in str(join.explain())
    run = join.run({"R": ROWS, "S": ROWS})
    observed = section(run, "observed")
    assert "R: 40 rows in" in observed
    assert f"{run.result.num_rows:,} results of " in observed
    assert str(join.explain(observed=run)) == str(run.explain())
    assert "observed" not in str(join.explain())


def test_a_running_join_explains_itself() -> None:
    with StreamJoin("R", "S", "R.x < S.x", CountWindow(9)).launch() as running:
        running.send("R", ROWS)
        assert "observed" in str(running.explain())


def test_a_running_join_shows_how_selective_it_is_now_and_what_would_be_chosen() -> None:
    join = StreamJoin("R", "S", "abs(R.x - S.x) <= 1", CountWindow(500), using=IndexJoin(threads=1, index="BPlusTree"))
    rows = pa.table({"x": list(range(100))})
    with join.launch() as running:
        for stream in "RS":
            running.send(stream, rows)
        running.finish()
        list(running.results())
        observed = section(running, "observed")
    for role in "RS":
        line = next(line for line in observed.splitlines() if f"[0], the newest rows of {role}: " in line)
        assert re.search(r" leaves \d\.\d\d%; index BPlusTree, as it would be chosen now: as asked for", line)


def test_it_shows_how_keys_are_divided_and_what_that_costs() -> None:
    join = StreamJoin("R", "S", "R.k = S.k", CountWindow(90), using=IndexJoin(threads=1, partitions=2))
    assert "divider <- router  (by hashes of the keys of R.k = S.k; divides anew when" in section(join, "elements")
    rows = pa.table({"k": list(range(400))})
    observed = section(join.run({"R": rows, "S": rows}), "observed")
    assert "divider: by hashes of keys of R.k = S.k, divided anew 0 times\n" in observed
    assert "divider: 1.00 rows sent for each row, at least 1; 1.00 expected by the newest rows" in observed
    loads = r"rows sent to each element: \d+\.\d%, \d+\.\d%; the busiest 1\.\d\d times the mean"
    assert re.search(loads, observed)


def test_spo_join_shows_which_comparisons_it_would_index_now() -> None:
    """The first rows decide for good; later ones may be different."""
    condition = "R.x < S.x AND R.y < S.y AND R.z < S.z"
    join = StreamJoin("R", "S", condition, CountWindow(500), using=SPOJoin(1), step_rows=100)

    def rows(x: int, y: int, z: int) -> pa.Table:
        return pa.table({"x": [x] * 100, "y": [y] * 100, "z": [z] * 100})

    with join.launch() as running:
        for r, s in ((rows(1, 1, 1), rows(0, 0, 2)), (rows(1, 1, 1), rows(2, 0, 0))):
            for stream, table in (("R", r), ("S", s)):
                running.send(stream, table)
        running.finish()
        list(running.results())
        observed = section(running, "observed")
    assert re.search(r"the newest rows of R: R.x < S.x leaves \d+.*%, R.y < S.y leaves 0.00%, R.z < S.z", observed)
    assert "indexed by R.x < S.x and R.y < S.y, now it would be R.y < S.y and R.z < S.z" in observed


def test_a_notebook_shows_a_table_and_the_graph_without_interpreting_names() -> None:
    html = StreamJoin("R", "S", 'R."<b>" < S.x', CountWindow(9)).explain()._repr_html_()
    assert "<table>" in html
    assert "<svg" in html
    assert "<b>&quot; &lt;" in html or "&lt;b&gt;" in html


@pytest.mark.parametrize("name", ENGINES)
def test_the_picture_of_every_engine_shows_every_edge(name: str) -> None:
    for on in ("R.k < S.k AND R.x > S.x", "R.k < S.k AND R.x > S.x OR R.id < S.id"):
        join = StreamJoin("R", "S", on, CountWindow(9), using=ENGINES[name](3))
        plan = join.plan()
        svg = plan.svg()
        assert edges_behind_boxes(svg) == []
        assert svg.count("marker-end=") == len({(edge.producer, edge.consumer) for edge in plan.edges})
