"""OVERLAPS and CONTAINS in SQL: what they stand for, how they are searched, and what remains of the names."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators import CountWindow, PredicateError, QueryError, StreamJoin, contains, function, overlaps, stream
from operators.sql.parse import parse_condition

R, S = stream("R"), stream("S")


def parsed(text: str, **functions: Any) -> str:
    return repr(parse_condition(text, "R", "S", functions))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("(R.a, R.b) CONTAINS S.a", contains((R.a, R.b), S.a)),
        ("(R.a, R.b) contains S.a + 1", contains((R.a, R.b), S.a + 1)),
        ("(R.a, R.b) CONTAINS (S.a, S.b)", contains((R.a, R.b), (S.a, S.b))),
        ("PERIOD (R.a, R.b) CONTAINS PERIOD (S.a, S.b)", contains((R.a, R.b), (S.a, S.b))),
        ("PERIOD (R.a, R.b) CONTAINS S.a AND R.a > 1", contains((R.a, R.b), S.a) & (R.a > 1)),
        ("(R.a, R.b) NOT CONTAINS S.a", ~contains((R.a, R.b), S.a)),
        ("NOT (R.a, R.b) CONTAINS (1, S.b)", ~contains((R.a, R.b), (1, S.b))),
        ("(R.a, R.b) CONTAINS S.a = R.ok", contains((R.a, R.b), S.a) == R.ok),
        ("PERIOD (R.a, R.b) OVERLAPS (S.a, S.b)", overlaps((R.a, R.b), (S.a, S.b))),
    ],
)
def test_what_is_written_is_what_python_says(written: str, meant: Any) -> None:
    assert parsed(written) == repr(meant)


def test_the_second_part_may_be_a_length() -> None:
    query = "SELECT R.n, S.n FROM R JOIN S ON (R.at, INTERVAL '5' MINUTE) CONTAINS S.at"
    times = pa.array([0, 60, 400], pa.timestamp("s"))
    join = StreamJoin.from_sql(query, window=CountWindow(9))
    found = join.collect({"R": {"n": [1], "at": times[:1]}, "S": {"n": [7, 8, 9], "at": times}})
    assert found.to_pydict() == {"R.n": [1, 1], "S.n": [7, 8]}


def test_both_ends_are_searched_by_keys() -> None:
    for inner in ("S.a", "(S.a, S.b)"):
        sections = dict(StreamJoin("R", "S", f"(R.a, R.b) CONTAINS {inner}", CountWindow(9)).explain().sections)
        assert [line for line in sections["search"] if "by keys, finds a range" in line] == list(sections["search"][:2])


def test_functions_and_columns_may_have_these_names() -> None:
    assert parsed("contains(R.t, S.t)") == "contains(R.t, S.t)"
    assert parsed("R.contains = S.period") == "R.contains = S.period"
    near = function(pc.equal, "period")
    assert parsed("period(R.a, S.a)", period=near) == "period(R.a, S.a)"
    with pytest.raises(QueryError, match=r"`PERIOD\(R.a, S.a\)` is not an interval"):
        parsed("PERIOD (R.a, S.a) CONTAINS S.b", period=near)
    named = StreamJoin.from_sql(
        "SELECT (R.a, R.b) CONTAINS S.a AS contains FROM R, S WHERE R.a < S.a WINDOW AS (ROWS 3)"
    )
    rows = {"R": {"a": [1], "b": [3]}, "S": {"a": [2, 5]}}
    assert named.collect(rows).to_pydict() == {"contains": [True, False]}


ADVICE = {
    "R.t CONTAINS 'a'": "contains(R.t, 'a')",
    "R.l CONTAINS S.a": "list_contains(R.l, S.a)",
    "R.a CONTAINS S.a": "(R.a, R.b) CONTAINS S.a",
    "(R.a, R.b) OVERLAPS S.a": "(R.a, R.b) CONTAINS S.a",
    "(R.a, R.b) PRECEDES (S.a, S.b)": "R.b <= S.a",
    "(R.a, R.b) SUCCEEDS (S.a, S.b)": "R.a >= S.b",
    "(R.a, R.b) EQUALS (S.a, S.b)": "(R.a, R.b) = (S.a, S.b)",
}
"""What is refused, and what its message says to write."""


@pytest.mark.parametrize(("refused", "advised"), ADVICE.items())
def test_what_is_refused_says_what_to_write_and_that_works(refused: str, advised: str) -> None:
    with pytest.raises(PredicateError, match="write ") as error:
        StreamJoin("R", "S", refused, CountWindow(3))
    general = advised.replace("R.t, 'a'", "text, part").replace("R.l, S.a", "list, value")
    starts = {"(R.a, R.b) CONTAINS S.a": "CONTAINS"}.get(advised, general)
    said = str(error.value).replace(".start", ".a").replace(".end", ".b")
    assert starts in said
    StreamJoin("R", "S", advised, CountWindow(3))
