"""One condition written in many ways gives one result.

A meaning is drawn, judged pair by pair by the oracle, and written in many ways (`rewording`): sides swapped, signs
changed, negated, with constants left or right, bands as two comparisons, lists as ORs, and so on, as SQL text and as
column expressions. Every wording must be true, false and unknown for the same pairs wherever it is evaluated, and its
normal form must find each match once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators import Engine, IndexJoin, SPOJoin, StreamJoin, UnboundedWindow
from operators.query.condition import normalise
from operators.query.expressions import Expression
from operators.query.interval_join import interval_windows
from operators.sql.parse import parse_condition
from tests import oracle_terms as term
from tests.key_families import FAMILIES, INSTANTS, INTEGERS, NUMBERS, Family, column
from tests.operators.query.rewording import MIRRORED, NEGATED, Meanings, Rewording
from tests.operators.query.searching import Tables, times_found, truths
from tests.operators.query.spelling import as_expression
from tests.oracle import Unbounded, assert_same_result, oracle
from tests.oracle_terms import Absolute, And, Arithmetic, Column, Compare, Not, values_of
from tests.sql_spelling import as_sql, readable

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

ROLES = ("R", "S")
ENGINES: dict[str, Engine] = {
    "SPOJoin": SPOJoin(elements=2, merge_interval=3),
    "IndexJoin": IndexJoin(threads=1, index="auto"),
}
by_family = pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])


def some_values(chance: Random, family: Family, rows: int) -> pa.Table:
    """A column `a` with a null, extremes and few different values, and a number per row."""
    kind = chance.choice(family.types)
    pool = family.pool(kind, hostile=True)
    values = [*(chance.choice(pool) for _ in range(rows - 1)), None]
    chance.shuffle(values)
    return pa.table({"id": pa.array(range(rows), pa.int64()), "a": column(values, kind)})


def tables_of(chance: Random, family: Family, rows: int) -> Tables:
    return some_values(chance, family, rows), some_values(chance, family, rows)


def judged(meaning: term.Condition, tables: Tables) -> list[term.Truth]:
    """What the oracle says of each pair, by left row, then by right row."""
    lefts, rights = ([{"a": value} for value in values_of(table["a"])] for table in tables)
    return [meaning.truth(left, right) for left in lefts for right in rights]


def expressed(written: term.Condition, chance: Random) -> Expression:
    """A wording as SQL text or as column expressions, read back."""
    return parse_condition(as_sql(written, ROLES), *ROLES) if chance.random() < 0.5 else as_expression(written, ROLES)


def drawn(family: Family, seed: int, rows: int) -> tuple[Random, term.Condition, Tables, Rewording]:
    chance = Random(f"{family.name} {seed}")
    meaning: term.Condition = readable(Meanings(chance, family).any())
    tables = tables_of(chance, family, rows)
    return chance, meaning, tables, Rewording(chance, family, exact=family is not NUMBERS)


def check_wordings(family: Family, seed: int, wordings: int) -> None:
    chance, meaning, tables, rewording = drawn(family, seed, rows=7)
    check_same(chance, family, meaning, [rewording.condition(meaning) for _ in range(wordings)], tables, seed)


def check_same(
    chance: Random, family: Family, meaning: term.Condition, wordings: list[term.Condition], tables: Tables, seed: int
) -> None:
    """Every wording has the truth of the meaning, evaluated and searched for."""
    expected = judged(meaning, tables)
    matches = np.array([truth is True for truth in expected]).reshape(7, 7)
    for written in wordings:
        shown = f"{family.name}, seed {seed}: {as_sql(meaning, ROLES)}\n  written {as_sql(written, ROLES)}"
        assert judged(written, tables) == expected, f"the rewording changed the meaning: {shown}"
        condition = expressed(written, chance)
        assert truths(condition, ROLES, tables) == expected, f"evaluated: {shown}"
        normal = normalise(condition, *ROLES)
        for probe_side in (0, 1):
            found = times_found(normal, tables, probe_side)
            assert (found == matches).all(), f"searched from side {probe_side} as {normal}: {shown}"


@by_family
def test_comparisons_mirrored_and_negated_are_true_for_the_same_pairs(family: Family) -> None:
    chance = Random(f"{family.name} plain")
    tables, meanings = tables_of(chance, family, rows=7), Meanings(chance, family)
    x, y = Column(0, "a"), Column(1, "a")
    operands: list[tuple[term.Value, term.Value]] = [(x, y), (y, x), (x, meanings.constant())]
    if family.algebra != "none":
        for difference in (Arithmetic("-", x, y), Arithmetic("-", y, x)):
            operands += [(difference, meanings.shift()), (Absolute(difference), meanings.shift())]
    for (one, other), op in product(operands, MIRRORED):
        meaning = readable(Compare(op, one, other))
        mirrored = Compare(MIRRORED[op], meaning.other, meaning.one)
        opposite = Compare(NEGATED[op], meaning.one, meaning.other)
        turned = Compare(MIRRORED[NEGATED[op]], meaning.other, meaning.one)
        wordings = [meaning, mirrored, Not(opposite), Not(turned), Not(Not(mirrored)), Not(Not(Not(turned)))]
        check_same(chance, family, meaning, wordings, tables, seed=0)


@by_family
def test_every_wording_is_true_for_the_same_pairs(family: Family) -> None:
    for seed in range(25):
        check_wordings(family, seed, wordings=3)


@pytest.mark.slow
@by_family
def test_very_many_wordings(family: Family) -> None:
    for seed in range(1000, 1500):
        check_wordings(family, seed, wordings=8)


def joined(tables: Tables, **arguments: Any) -> Counter[tuple[int, int]]:
    """The pairs of row numbers that a join gives."""
    join = StreamJoin(*ROLES, select=["R.id", "S.id"], **arguments)
    result = join.collect(dict(zip(ROLES, tables, strict=True)))
    return Counter(zip(result["R.id"].to_pylist(), result["S.id"].to_pylist(), strict=True))


def on(written: term.Condition, chance: Random) -> str | Expression:
    return as_sql(written, ROLES) if chance.random() < 0.5 else as_expression(written, ROLES)


@pytest.mark.thorough
@by_family
@pytest.mark.parametrize("name", ENGINES)
def test_joins_of_every_wording_give_one_result(family: Family, name: str) -> None:
    for seed in range(4):
        chance, meaning, tables, rewording = drawn(family, seed, rows=12)
        truth = judged(meaning, tables)
        expected = Counter((n // 12, n % 12) for n in range(144) if truth[n])
        for _ in range(2):
            written = rewording.condition(meaning)
            found = joined(tables, on=on(written, chance), window=UnboundedWindow(), using=ENGINES[name])
            assert found == expected, f"{family.name}, seed {seed}: {as_sql(written, ROLES)}"


@by_family
def test_every_wording_of_a_filter_keeps_the_same_rows(family: Family) -> None:
    for seed in range(4):
        chance, _, tables, rewording = drawn(family, seed, rows=8)
        meanings = Meanings(chance, family)
        meaning = readable(And((meanings.of_one(0), meanings.of_one(1))))
        less = Compare("<=", Column(0, "id"), Column(1, "id"))
        sources = {role: {role: table} for role, table in zip(ROLES, tables, strict=True)}
        unbounded = (Unbounded(), Unbounded())
        expected = oracle(sources, ("R", "R"), ("S", "S"), less, unbounded, kind="left", where=meaning.parts)
        whole = replace(rewording, one_range=True)  # a filter is a conjunction of conditions on one stream each
        for _ in range(2):
            written = whole.condition(And(tuple(rewording.condition(part) for part in meaning.parts)))
            join = StreamJoin(*ROLES, on(less, chance), UnboundedWindow(), kind="left", where=on(written, chance))
            found = join.collect(dict(zip(ROLES, tables, strict=True)))
            assert_same_result(found, expected.table)


def waits(condition: Expression, kind: pa.DataType) -> list[Any]:
    """How long a row of each side stays live in an interval join, in units of the event time."""
    windows = interval_windows(condition, ("R", "a"), ("S", "a"))
    assert windows is not None, f"no windows: {condition}"
    return [window.in_unit_of(kind)[0] for window in windows]


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us"), pa.timestamp("s"), pa.date32()], ids=str)
def test_every_wording_of_an_interval_join_has_the_same_windows_and_pairs(kind: pa.DataType) -> None:
    family = INTEGERS if pa.types.is_integer(kind) else INSTANTS
    for seed in range(30):
        chance = Random(f"interval {kind} {seed}")
        meaning = Meanings(chance, family).near()
        pool = sorted(family.pool(kind, hostile=False))
        left, right = (pa.table({"id": range(9), "a": column(sorted(chance.choices(pool, k=9)), kind)}) for _ in ROLES)
        truth = judged(meaning, (left, right))
        expected = Counter((n // 9, n % 9) for n in range(81) if truth[n])
        windows = waits(as_expression(meaning, ROLES), kind)
        rewording = Rewording(chance, family, exact=True, one_range=True)
        for turn in range(6):
            written = rewording.condition(meaning)
            shown = f"{kind}, seed {seed}: {as_sql(meaning, ROLES)}\n  written {as_sql(written, ROLES)}"
            assert waits(expressed(written, chance), kind) == windows, shown
            if turn == 0:
                assert joined((left, right), on=on(written, chance), event_time="a") == expected, shown
