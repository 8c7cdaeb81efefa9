"""The judge on trial: kinds, expiry, order, late rows and three-valued conditions, by hand-worked examples.

Each example is small enough to be worked on paper beside docs/semantics.md.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from tests import oracle_terms as term
from tests.comparison import assert_ordered
from tests.duckdb_kinds import duckdb_kinds
from tests.key_families import FAMILIES, WIDE_DECIMALS
from tests.oracle import Comparison, Condition, Count, Expected, Kind, Linear, Time, Unbounded, Window, oracle
from tests.oracle_order import Late
from tests.surface import KINDS, SurfaceCase, surface_cases

LEFT, RIGHT = ("R", "R"), ("S", "S")
NAN = float("nan")
SAME_KEY = [Comparison(Linear("k"), "=", Linear("k"))]


def rows(ids: list[int], times: list[Any], keys: list[Any]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "ts": pa.array(times), "k": pa.array(keys)})


# In order of time: R1 S11 R2 R3 S12 R4 S13
R = rows([1, 2, 3, 4], [1, 3, 4, 6], ["a", "b", "a", "c"])
S = rows([11, 12, 13], [2, 5, 7], ["a", "a", "b"])


def run(kind: Kind, windows: tuple[Window, Window], **options: Any) -> Expected:
    return oracle({"R": {"R": R}, "S": {"S": S}}, LEFT, RIGHT, SAME_KEY, windows, "ts", kind=kind, **options)


def shown(expected: Expected) -> list[tuple[Any, ...]]:
    """The ids (and matches) of each result row, then its place."""
    names = [name for name in expected.table.column_names if name.endswith(".id") or name == "matches"]
    columns = [expected.table[name].to_pylist() for name in names]
    return list(zip(*columns, expected.places, strict=True))


TWO = (Count(2), Count(2))
# Pairs within the last two rows of each side: S11 meets R1; R3 meets S11; S12 meets R3 (R1 has gone: R2 and R3 are the
# last two). S13 comes after R4: R3 and R4 are live, R2 is not, so its key b finds nothing.
# R1 expires at S12, the first row with three rows of R before it; R2 at S13. S11 would expire with a fourth row after
# three of S: never. At the end R3 R4 S11 S12 S13 are still live.


def test_inner_gives_the_pairs() -> None:
    assert shown(run("inner", TWO)) == [(1, 11, 1), (3, 11, 3), (3, 12, 4)]


def test_an_unmatched_row_comes_out_at_the_row_at_which_it_expires_else_at_the_end() -> None:
    assert shown(run("left", TWO)) == [(1, 11, 1), (3, 11, 3), (3, 12, 4), (2, None, 6), (4, None, 7)]
    assert shown(run("right", TWO)) == [(1, 11, 1), (3, 11, 3), (3, 12, 4), (None, 13, 7)]
    assert shown(run("full", TWO)) == [
        (1, 11, 1), (3, 11, 3), (3, 12, 4), (2, None, 6), (4, None, 7), (None, 13, 7),
    ]  # fmt: skip


def test_a_row_of_either_stream_makes_a_row_expire() -> None:
    # Time windows of 1: R1 (1) is gone at R2 (3) if not met at S11 (2): it was. R2 (3) is gone at S12 (5), R3 (4) at
    # R4 (6), which is of its own stream; S12 (5) is at 7; R4 (6) lives to the end.
    assert shown(run("full", (Time(1), Time(1)))) == [
        (1, 11, 1), (2, None, 4), (3, 12, 4), (4, None, 7), (None, 13, 7),
    ]  # fmt: skip


def test_unmatched_rows_come_before_the_pairs_of_their_place_by_their_own_seq() -> None:
    # Windows of 0: a row meets only rows of its own time, and goes with the first later one. At time 4 all rows before
    # go: S11 (1), R1 (2), S12 (3), in the order of their own numbers, before the pair of time 4.
    left, right = rows([1, 2], [2, 4], ["a", "a"]), rows([11, 12, 13], [1, 3, 4], ["a", "a", "a"])
    expected = oracle(
        {"R": {"R": left}, "S": {"S": right}}, LEFT, RIGHT, SAME_KEY, (Time(0), Time(0)), "ts", kind="full"
    )
    # S11 goes at R1's place, R1 at S12's, S12 at R2's
    assert shown(expected) == [(None, 11, 1), (1, None, 2), (None, 12, 3), (2, 13, 4)]
    late = rows([1, 2], [2, 9], ["b", "a"])
    early = rows([11, 12, 13], [1, 2, 9], ["a", "c", "a"])
    several = oracle(
        {"R": {"R": late}, "S": {"S": early}}, LEFT, RIGHT, SAME_KEY, (Time(3), Time(3)), "ts", kind="full"
    )
    # S11 R1 S12 | R2 S13: at R2 three rows go, by seq and not by side
    assert shown(several) == [(None, 11, 3), (1, None, 3), (None, 12, 3), (2, 13, 4)]


def test_semi_gives_a_left_row_once_at_the_place_of_its_first_pair() -> None:
    expected = run("semi", TWO)
    assert expected.table.column_names == ["R.id", "R.ts", "R.k"]
    assert shown(expected) == [(1, 1), (3, 3)]


def test_semi_rows_of_one_place_come_in_the_order_of_their_pairs() -> None:
    left, right = rows([1, 2], [1, 2], ["a", "a"]), rows([11], [3], ["a"])
    expected = oracle({"R": {"R": left}, "S": {"S": right}}, LEFT, RIGHT, SAME_KEY, TWO, "ts", kind="semi")
    assert shown(expected) == [(1, 2), (2, 2)]


def test_anti_gives_unmatched_left_rows() -> None:
    assert shown(run("anti", TWO)) == [(2, 6), (4, 7)]
    assert run("anti", TWO).table.column_names == ["R.id", "R.ts", "R.k"]


def test_count_gives_every_row_the_number_of_pairs_that_belong_to_it() -> None:
    expected = run("count", TWO)
    assert expected.table.column_names[-1] == "matches"
    assert shown(expected) == [
        (1, None, 0, 0), (None, 11, 1, 1), (2, None, 0, 2), (3, None, 1, 3), (None, 12, 1, 4), (4, None, 0, 5),
        (None, 13, 0, 6),
    ]  # fmt: skip


def test_where_keeps_a_row_from_appearing_but_not_from_being_counted_by_windows() -> None:
    not_two = term.Compare("!=", term.Column(0, "id"), term.Constant(2))
    not_twelve = term.Compare("!=", term.Column(1, "id"), term.Constant(12))
    both = (not_two, not_twelve)
    # R1 still expires at S12, since R2 takes its place in the window though it does not appear
    assert shown(run("full", TWO, where=both)) == [(1, 11, 1), (3, 11, 3), (4, None, 7), (None, 13, 7)]
    assert shown(run("count", TWO, where=both)) == [
        (1, None, 0, 0), (None, 11, 1, 1), (3, None, 1, 3), (4, None, 0, 5), (None, 13, 0, 6),
    ]  # fmt: skip
    # what is unknown is not satisfied
    unknown = term.Compare("=", term.Column(0, "id"), term.Constant(None))
    assert shown(run("left", TWO, where=(unknown, None))) == []


def test_a_condition_on_the_left_alone_in_on_leaves_its_rows_unmatched() -> None:
    on = term.And((*SAME_KEY, term.Compare("<", term.Column(0, "id"), term.Constant(3))))
    expected = oracle({"R": {"R": R}, "S": {"S": S}}, LEFT, RIGHT, on, TWO, "ts", kind="left")
    # R2 expires at S13 (6); R3, whose id is too great, lives to the end
    assert shown(expected) == [(1, 11, 1), (2, None, 6), (3, None, 7), (4, None, 7)]


# --- self-joins -----------------------------------------------------------------------------------


def myself(kind: Kind, windows: tuple[Window, Window], condition: Any) -> list[tuple[Any, ...]]:
    table = rows([1, 2, 3], [1, 2, 3], [5, 7, 5])
    return shown(oracle({"T": {"T": table}}, ("a", "T"), ("b", "T"), condition, windows, "ts", kind=kind))


LESS = [Comparison(Linear("k"), "<", Linear("k"))]


def test_self_join_unmatched_rows_come_in_each_role_the_left_first() -> None:
    # k: 5 7 5, pairs a.k < b.k: (1, 2) when 2 comes, (3, 2) when 3 comes
    assert myself("full", (Unbounded(), Unbounded()), LESS) == [
        (1, 2, 1), (3, 2, 2), (None, 1, 3), (2, None, 3), (None, 3, 3),
    ]  # fmt: skip
    # windows of one row: 1 expires at 3 in both roles; as the left row of (1, 2) it has been matched
    assert myself("full", (Count(1), Count(1)), LESS) == [
        (1, 2, 1), (None, 1, 2), (3, 2, 2), (2, None, 3), (None, 3, 3),
    ]  # fmt: skip
    never = [Comparison(Linear("k", 0, 1), "<", Linear("k", 0))]
    assert myself("full", (Count(1), Count(1)), never) == [
        (1, None, 2), (None, 1, 2), (2, None, 3), (None, 2, 3), (3, None, 3), (None, 3, 3),
    ]  # fmt: skip


def test_self_join_counts_both_roles_the_left_first() -> None:
    assert myself("count", (Unbounded(), Unbounded()), LESS) == [
        (1, None, 0, 0), (None, 1, 0, 0), (2, None, 0, 1), (None, 2, 1, 1), (3, None, 1, 2), (None, 3, 0, 2),
    ]  # fmt: skip


def test_self_join_semi_follows_the_order_of_pairs() -> None:
    same = [Comparison(Linear("k"), "=", Linear("k"))]
    # pairs (3, 1) and (1, 3) at row 3: the one with the later row on the left first
    assert myself("semi", (Unbounded(), Unbounded()), same) == [(3, 2), (1, 2)]
    assert myself("anti", (Unbounded(), Unbounded()), same) == [(2, 3)]


# --- windows --------------------------------------------------------------------------------------


def test_a_window_per_key_counts_the_rows_of_each_key() -> None:
    left = rows([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], ["a", "b", "b", "a", None])
    right = rows([11, 12, 13], [6, 7, 8], ["a", "b", None])
    per_key = (Count(1, per_key=True), Unbounded())
    expected = oracle({"R": {"R": left}, "S": {"S": right}}, LEFT, RIGHT, SAME_KEY, per_key, "ts", kind="left")
    # R1 goes when the next a comes after R4: S11; R2 when S12 comes. R5 is in no group and never live,
    # so it goes with the next row.
    assert shown(expected) == [(1, None, 5), (5, None, 5), (4, 11, 5), (2, None, 6), (3, 12, 6)]


def test_keys_of_a_window_per_key_are_equal_where_the_condition_says_so() -> None:
    left = rows([1, 2], [1, 2], [1, 2])
    right = rows([11], [3], [1.0])
    per_key = (Count(1, per_key=True), Unbounded())
    expected = oracle({"R": {"R": left}, "S": {"S": right}}, LEFT, RIGHT, SAME_KEY, per_key, "ts")
    assert shown(expected) == [(1, 11, 2)]


def test_a_tumbling_window_empties_at_the_multiples_of_its_size() -> None:
    ids = [1, 2, 3, 4, 5, 6]
    left, right = rows(ids, ids, ["a"] * 6), rows([11], [9], ["a"])
    sources = {"R": {"R": left}, "S": {"S": right}}
    got = oracle(sources, LEFT, RIGHT, SAME_KEY, (Count(4, 4), Unbounded()), "ts")
    assert shown(got) == [(5, 11, 6), (6, 11, 6)]  # ceil((6 - 4) / 4) * 4 = 4
    got = oracle(sources, LEFT, RIGHT, SAME_KEY, (Time(5, 5), Unbounded()), "ts")
    assert shown(got) == [(5, 11, 6), (6, 11, 6)]  # (floor((9 - 5) / 5) + 1) * 5 = 5


def test_nothing_expires_from_an_unbounded_window() -> None:
    assert shown(run("anti", (Unbounded(), Unbounded()))) == [(4, 7)]


# --- order ----------------------------------------------------------------------------------------


def test_weaker_orders_are_judged_by_what_they_promise() -> None:
    table, places = pa.table({"v": [1, 2, 3, 4, 5]}), [0, 0, 1, 3, 4]

    def shuffled(*order: int) -> pa.Table:
        return table.take(pa.array(order))

    assert_ordered("none", shuffled(4, 3, 2, 1, 0), table, places)
    assert_ordered("outer", shuffled(1, 0, 2, 3, 4), table, places)
    assert_ordered(2, shuffled(2, 1, 0, 3, 4), table, places)
    for ordering, order in [("strict", (1, 0, 2, 3, 4)), ("outer", (0, 2, 1, 3, 4)), (2, (0, 1, 3, 2, 4))]:
        with pytest.raises(AssertionError):
            assert_ordered(ordering, shuffled(*order), table, places)
    with pytest.raises(AssertionError, match="missing"):
        assert_ordered("none", pa.table({"v": [1, 2, 3, 4, 4]}), table, places)


# --- late rows ------------------------------------------------------------------------------------


def test_rows_within_the_bound_take_their_place_and_others_are_late() -> None:
    left = rows([1, 2, 3, 4, 5, 6], [10, 7, 12, 9, 10, None], ["a"] * 6)
    right = rows([11], [8], ["a"])
    sources = {"R": {"R": left}, "S": {"S": right}}
    expected = oracle(
        sources, LEFT, RIGHT, SAME_KEY, (Unbounded(), Unbounded()), "ts", kind="left", out_of_order={"R": 2}
    )
    # 7 < 10 - 2 is late; 9 < 12 - 2 too; 10 is not. A late row does not move the greatest time.
    assert expected.late == [
        Late("R", "R", 1, 7, "out of order"),
        Late("R", "R", 3, 9, "out of order"),
        Late("R", "R", 5, None, "no event time"),
    ]
    assert expected.ordered["R"]["id"].to_pylist() == [1, 5, 3]  # 10 at offset 0, 10 at offset 4, 12
    assert shown(expected) == [(1, 11, 1), (5, 11, 2), (3, 11, 3)]


def test_a_bound_is_a_length_of_time_where_times_are() -> None:
    stamps = pa.array([3_000_000, 1_000_000, 900_000], pa.timestamp("us"))
    left = pa.table({"id": [1, 2, 3], "ts": stamps, "k": ["a"] * 3})
    sources = {"R": {"R": left}, "S": {"S": left.slice(0, 1)}}
    bounds = {"R": timedelta(seconds=2), "S": timedelta(0)}
    windows = (Unbounded(), Unbounded())
    expected = oracle(sources, LEFT, RIGHT, SAME_KEY, windows, "ts", out_of_order=bounds)
    assert [row.offset for row in expected.late] == [2]


# --- conditions -----------------------------------------------------------------------------------

X, Y = term.Column(0, "x"), term.Column(1, "y")
TRUE = term.Compare("=", term.Constant(1), term.Constant(1))
FALSE = term.Compare("=", term.Constant(1), term.Constant(2))
UNKNOWN = term.Compare("=", term.Constant(1), term.Constant(None))


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        (term.And((TRUE, UNKNOWN)), None),
        (term.And((FALSE, UNKNOWN)), False),
        (term.Or((TRUE, UNKNOWN)), True),
        (term.Or((FALSE, UNKNOWN)), None),
        (term.Not(UNKNOWN), None),
        (term.Not(FALSE), True),
        (term.In(term.Constant(3), (term.Constant(1), term.Constant(None))), None),
        (term.In(term.Constant(1), (term.Constant(1), term.Constant(None))), True),
        (term.Not(term.In(term.Constant(3), (term.Constant(1), term.Constant(2)))), True),
        (term.Between(term.Constant(5), term.Constant(6), term.Constant(None)), False),
        (term.Between(term.Constant(5), term.Constant(4), term.Constant(None)), None),
        (term.IsNull(term.Constant(NAN)), True),
        (term.IsNull(term.Arithmetic("+", term.Constant(1), term.Constant(None))), True),
        (term.Not(term.IsNull(term.Constant(0))), True),
        (term.Not(term.Compare("!=", term.Constant(NAN), term.Constant(1.0))), None),
        (term.Function(lambda v: None if v is None else v > 1, (term.Constant(None),)), None),
    ],
)
def test_conditions_follow_three_valued_logic(condition: Condition, truth: bool | None) -> None:
    assert condition.truth({}, {}) is truth


DECIMAL, LONG = pa.decimal128(10, 2), pa.decimal256(60, 30)


@pytest.mark.parametrize(
    ("x", "x_type", "op", "y", "y_type"),
    [
        (Decimal("1.10"), DECIMAL, "=", Decimal("1.1"), pa.decimal128(5, 1)),
        (Decimal("2.00"), DECIMAL, "=", 2, pa.int8()),
        (Decimal(10**28 + 1), LONG, ">", Decimal(10**28), LONG),
        (True, pa.bool_(), ">", False, pa.bool_()),
        (True, pa.bool_(), "=", 1, pa.int64()),
        (2**64 - 1, pa.uint64(), ">", -1, pa.int64()),
        (0.1, pa.float32(), "!=", 0.1, pa.float64()),
        ("Z", pa.string(), "<", "a", pa.large_string()),
        ("\uffff", pa.string(), "<", "\U00010000", pa.string()),  # by code point, not by UTF-16
        (b"\x7f", pa.binary(), "<", b"\x80", pa.binary()),
        ("a", pa.string(), "<", "a\x00", pa.string()),
        (date(2024, 2, 29), pa.date32(), "=", date(2024, 2, 29), pa.date64()),
        (date(2024, 2, 29), pa.date32(), "<", datetime(2024, 2, 29, 0, 0, 1), pa.timestamp("s")),
        (date(2024, 2, 29), pa.date32(), "=", datetime(2024, 2, 29), pa.timestamp("ns")),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), pa.timestamp("ms", "Asia/Tokyo"), "=",
         datetime(2024, 1, 1, 12, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (timedelta(seconds=1), pa.duration("s"), "=", timedelta(milliseconds=1000), pa.duration("ms")),
        (time(12, 0), pa.time32("s"), "<", time(12, 0, 0, 1), pa.time64("us")),
    ],
)  # fmt: skip
def test_values_of_different_types_compare_by_what_they_mean(
    x: Any, x_type: pa.DataType, op: term.Op, y: Any, y_type: pa.DataType
) -> None:
    sources = {
        "R": {"R": pa.table({"x": pa.array([x], x_type)})},
        "S": {"S": pa.table({"y": pa.array([y], y_type)})},
    }
    windows = (Unbounded(), Unbounded())
    condition = term.Compare(op, X, Y)
    assert oracle(sources, LEFT, RIGHT, condition, windows).table.num_rows == 1
    assert oracle(sources, LEFT, RIGHT, term.Not(condition), windows).table.num_rows == 0


@pytest.mark.parametrize(
    ("one", "op", "other"),
    [
        # A number written beside decimals is the decimal that is written
        (term.Arithmetic("+", term.Constant(Decimal("0.2")), term.Constant(0.1)), "=", term.Constant(Decimal("0.3"))),
        (term.Constant(Decimal("0.1")), "=", term.Constant(0.1)),
        # ... but beside floats it is a float
        (term.Arithmetic("+", term.Constant(0.2), term.Constant(0.1)), "!=", term.Constant(0.3)),
        # Where a float takes part the integers of the operand become floats first, 2^53 + 1 the even neighbour
        (term.Arithmetic("+", term.Arithmetic("*", term.Constant(2**53 + 1), term.Constant(2)), term.Constant(0.0)),
         "=", term.Constant(2**54)),
        # ... but not those of the other operand
        (term.Arithmetic("*", term.Constant(2**53 + 1), term.Constant(2)), ">", term.Constant(2.0**54)),
        # A number written beside a decimal, on either side of the sign
        (term.Arithmetic("+", term.Constant(0.1), term.Constant(0.2)), "=", term.Constant(Decimal("0.3"))),
        (term.Constant(timedelta(days=1)), "=",
         term.Arithmetic("-", term.Constant(date(2024, 3, 1)), term.Constant(date(2024, 2, 29)))),
        (term.Arithmetic("+", term.Constant(date(2024, 2, 29)), term.Constant(timedelta(hours=24))), "=",
         term.Constant(datetime(2024, 3, 1))),
        (term.Absolute(term.Negative(term.Constant(3))), "=", term.Constant(3)),
    ],
)  # fmt: skip
def test_arithmetic_is_as_written(one: term.Value, op: term.Op, other: term.Value) -> None:
    assert term.Compare(op, one, other).truth({}, {}) is True


# --- another judge --------------------------------------------------------------------------------

_TAME = surface_cases(
    kinds=tuple(kind for kind in KINDS if kind != "aggregate"),  # tests/operators/test_duckdb.py asks DuckDB for these
    families=tuple(family for family in FAMILIES if family is not WIDE_DECIMALS),
    hostile=False,
    out_of_order=False,
    event_times=("none", "int64", "float64", "s", "us"),
    windows_per_key=False,
    with_where=False,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(_TAME)
def test_duckdb_agrees_on_kinds_expiry_and_conditions(case: SurfaceCase) -> None:
    check_with_duckdb(case)


@pytest.mark.slow
@settings(max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
@given(_TAME)
def test_duckdb_agrees_on_very_many_kinds_and_conditions(case: SurfaceCase) -> None:
    check_with_duckdb(case)


def check_with_duckdb(case: SurfaceCase) -> None:
    expected = case.expected()
    found: list[tuple[int, ...]] = list(expected.triples)
    if case.kind == "count":
        matches = expected.table["matches"].to_pylist()
        found = [(*triple, number) for triple, number in zip(found, matches, strict=True)]
    left, right = ((role, case.streams[role]) for role in case.roles)
    assert found == duckdb_kinds(case.sources, left, right, case.on, case.windows, case.event_time, case.kind)
