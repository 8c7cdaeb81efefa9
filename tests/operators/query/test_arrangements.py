"""Every arrangement of a constant, abs and NOT around one difference, against DuckDB.

2,112 comparisons (6 operators x 2 sides x 4 constants x 11 operands x up to 3 NOTs), and 704 ranges and lists, are
asked of DuckDB in one query each, over all pairs of a few numbers. Ours are evaluated on the same pairs and searched
for by intervals of keys; some also go through whole joins.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from operators import IndexJoin, SPOJoin, StreamJoin, UnboundedWindow
from operators.query.condition import normalise, without_not
from operators.sql.parse import parse_condition
from tests.operators.query.searching import times_found, truths

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

ROLES = ("R", "S")
CONSTANTS = (-2, 0, 1, 3)
OPERANDS = (
    "{x}", "-{x}", "1 - {x}", "{x} - 1", "abs({x})", "abs(-{x})", "-abs({x})", "abs({x} - 1)", "abs({x}) - 1",
    "1 - abs({x})", "abs(abs({x}) - 2)",
)  # fmt: skip
OPERATORS = ("<", "<=", ">", ">=", "=", "!=")
NOTS = tuple("NOT (" * depth + "{}" + ")" * depth for depth in range(4))
RANGES = (
    "{o} BETWEEN {c} AND {d}", "{o} NOT BETWEEN {c} AND {d}", "{c} BETWEEN {o} AND {o} + ({d})", "{o} IN ({c}, {d})",
)  # fmt: skip

R = pa.table({"id": range(8), "a": pa.array([0, 1, -1, 2, 5, None, -4, 3], pa.int64())})
S = pa.table({"id": range(7), "a": pa.array([0, 2, None, -1, 1, 4, -3], pa.int64())})


def comparisons(x: str) -> list[str]:
    """Each operand and constant, in either order, under each number of NOTs."""
    found = []
    for operator, constant, operand in product(OPERATORS, CONSTANTS, OPERANDS):
        written = operand.format(x=x)
        for one, other in ((written, constant), (constant, written)):
            found += [under.format(f"{one} {operator} {other}") for under in NOTS]
    return found


def ranges(x: str) -> list[str]:
    """Each operand between two constants, in a list of them, or itself the end of a range."""
    found = []
    for shape, operand, (c, d) in product(RANGES, OPERANDS, product(CONSTANTS, (0, 3))):
        found.append(shape.format(o=operand.format(x=x), c=c, d=d))
    return [under.format(each) for each in found for under in NOTS[:2]]


def judged_by_duckdb(conditions: list[str], kind: str) -> list[list[bool | None]]:
    """What each condition is for all pairs, by left row, then by right row."""
    con = duckdb.connect(config={"threads": 1})
    try:
        con.register("r_rows", R)
        con.register("s_rows", S)
        for name in "rs":
            con.execute(f"CREATE TABLE {name} AS SELECT id, a::{kind} AS a FROM {name}_rows")
        shown = ", ".join(f"({condition}) AS c{number}" for number, condition in enumerate(conditions))
        query = f"SELECT {shown} FROM r AS R CROSS JOIN s AS S ORDER BY R.id, S.id"
        return [column.to_pylist() for column in con.sql(query).to_arrow_table().columns]
    finally:
        con.close()


ARRANGEMENTS = {
    "comparisons of a difference": comparisons("(R.a - S.a)"),
    "comparisons of one column": comparisons("R.a"),
    "ranges of a difference": ranges("(R.a - S.a)"),
}


def test_there_are_as_many_arrangements_as_the_opening_says() -> None:
    assert [len(each) for each in ARRANGEMENTS.values()] == [2112, 2112, 704]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "bigint") for name in ARRANGEMENTS),
        *(pytest.param(name, "double", marks=pytest.mark.slow) for name in ARRANGEMENTS),
    ],
)
def test_every_arrangement_means_what_it_means_in_duckdb(name: str, kind: str) -> None:
    conditions = ARRANGEMENTS[name]
    column = pa.int64() if kind == "bigint" else pa.float64()
    tables = tuple(table.set_column(1, "a", table["a"].cast(column)) for table in (R, S))
    wrong = []
    searched: set[tuple[str, bytes]] = set()
    for written, expected in zip(conditions, judged_by_duckdb(conditions, kind), strict=True):
        condition = parse_condition(written, *ROLES)
        if truths(condition, ROLES, tables) != expected:
            wrong.append(f"evaluated: {written}")
        matches = np.array([truth is True for truth in expected]).reshape(R.num_rows, S.num_rows)
        # What is searched for follows from the condition without NOT: most arrangements share it with others.
        pushed = (repr(without_not(condition, ROLES)), matches.tobytes())
        if pushed in searched:
            continue
        searched.add(pushed)
        normal = normalise(condition, *ROLES)
        for probe_side in (0, 1):
            if (times_found(normal, tables, probe_side) != matches).any():
                wrong.append(f"searched from side {probe_side} as {normal}: {written}")
    assert not wrong, f"{len(wrong)} of {len(conditions)}: {wrong[:5]}"


@pytest.mark.parametrize("engine", [SPOJoin(elements=2), IndexJoin(index="auto")], ids=["SPOJoin", "IndexJoin"])
def test_joins_of_some_arrangements_give_the_pairs_of_duckdb(engine: SPOJoin | IndexJoin) -> None:
    conditions = Random(11).sample([each for every in ARRANGEMENTS.values() for each in every], 120)
    for written, expected in zip(conditions, judged_by_duckdb(conditions, "bigint"), strict=True):
        on = StreamJoin(*ROLES, written, UnboundedWindow(), select=["R.id", "S.id"], using=engine)
        found = on.collect({"R": R, "S": S})
        pairs = Counter(zip(found["R.id"].to_pylist(), found["S.id"].to_pylist(), strict=True))
        size = S.num_rows
        assert pairs == Counter((n // size, n % size) for n, truth in enumerate(expected) if truth), written
