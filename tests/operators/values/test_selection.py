from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from operators import CountWindow, JoinError, StreamJoin, stream
from operators.query.errors import PredicateError
from operators.query.kinds import Kind
from operators.query.select_items import CountItem, SelectItem
from operators.values.selection import Selected, Selection

R, S = stream("R"), stream("S")
LEFT = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("ts", pa.timestamp("s")), ("#seq", pa.int64())])
RIGHT = pa.schema([("id", pa.int32()), ("x", pa.float32()), ("ts", pa.timestamp("s")), ("name", pa.string())])


def names(selection: Selection) -> list[str]:
    return selection.result_schema((LEFT, RIGHT)).names


def test_none_stands_for_all_columns_that_the_kind_shows() -> None:
    left, right = ["R.id", "R.x", "R.ts"], ["S.id", "S.x", "S.ts", "S.name"]
    assert names(Selection.of(("R", "S"), None)) == left + right
    assert names(Selection.of(("R", "S"), None, Kind.FULL)) == left + right
    assert names(Selection.of(("R", "S"), None, Kind.SEMI)) == left
    assert names(Selection.of(("R", "S"), None, Kind.ANTI)) == left
    assert names(Selection.of(("R", "S"), None, Kind.COUNT)) == [*left, *right, "matches"]


def test_items_come_in_the_order_of_the_list_with_their_names_and_types() -> None:
    given: list[Any] = [
        "S.id",
        (S.ts - R.ts).alias("delay"),
        R["id"],
        "R.*",
        R.x * 2,
        (R.x < S.x).alias("less"),
        S.name.alias("n"),
    ]
    with pytest.raises(JoinError, match=r"'R\.id' would appear twice"):
        names(Selection.of(("R", "S"), given))
    given[2] = R.id.alias("again")
    selection = Selection.of(("R", "S"), given)
    schema = selection.result_schema((LEFT, RIGHT))
    assert schema.names == ["S.id", "delay", "again", "R.id", "R.x", "R.ts", "R.x * 2", "less", "n"]
    types = [pa.int32(), pa.duration("s"), pa.int64(), pa.int64(), pa.float64(), pa.timestamp("s"), pa.float64()]
    assert schema.types == [*types, pa.bool_(), pa.string()]
    assert repr(pickle.loads(pickle.dumps(selection))) == repr(selection)


def test_plain_columns_are_told_apart_from_computed_ones() -> None:
    selection = Selection.of(("R", "S"), ["R.id", (S.x - R.x).alias("d"), "S.name"])
    assert selection.columns(0, LEFT) == [Selected(0, "id", "R.id")]
    assert selection.columns(1, RIGHT) == [Selected(2, "name", "S.name")]
    assert [(each.place, repr(each.expression), each.name) for each in selection.computed] == [(1, "S.x - R.x", "d")]
    assert selection.needed_columns(0, LEFT) == ["id", "x"]
    assert selection.needed_columns(1, RIGHT) == ["name", "x"]
    assert selection.missing(1, pa.schema([("name", pa.string())])) == ["x"]
    assert selection.counted is None


def test_the_number_of_matches_has_the_place_it_is_given_or_the_last() -> None:
    listed = Selection(("R", "S"), (CountItem("n"), SelectItem("R", "id")), Kind.COUNT)
    assert names(listed) == ["n", "R.id"]
    assert names(Selection.of(("R", "S"), ["R.id"], Kind.COUNT)) == ["R.id", "matches"]
    assert listed.result_schema((LEFT, RIGHT)).field("n").type == pa.int64()
    with pytest.raises(JoinError, match="belongs to kind='count', not to kind='left'"):
        Selection(("R", "S"), (CountItem(),), Kind.LEFT)
    with pytest.raises(JoinError, match="selected twice"):
        Selection(("R", "S"), (CountItem("a"), CountItem("b")), Kind.COUNT)


def test_what_needs_a_stream_of_unknown_schema_has_type_null() -> None:
    selection = Selection.of(("R", "S"), ["R.id", "S.id", (S.x + 1).alias("one"), (R.x + S.x).alias("both")])
    schema = selection.result_schema((LEFT, None))
    assert schema.types == [pa.int64(), pa.null(), pa.null(), pa.null()]


def test_a_value_that_does_not_fit_the_types_is_refused_with_both() -> None:
    with pytest.raises(PredicateError, match=r"S\.name is string"):
        Selection.of(("R", "S"), [(R.x + S.name).alias("sum")]).result_schema((LEFT, RIGHT))


@pytest.mark.parametrize("kind", [kind for kind in Kind if not (kind.is_as_of or kind.is_aggregate)])
def test_results_have_the_schema_that_was_promised_in_every_kind(kind: Kind) -> None:
    table = pa.table({"id": [1, 2, 3], "x": [1.0, None, 3.0], "ts": [1, 2, 3]})
    select: list[Any] = ["R.id", (R.id * 10).alias("ten")]
    if kind.shows_right:
        select += [(S.x - R.x).alias("apart"), S.id.alias("other")]
    join = StreamJoin("R", "S", "R.x < S.x OR R.id = 2 AND S.id = 3", CountWindow(2), kind, None, select, "ts")
    result = join.collect({"R": table, "S": table})
    assert result.schema == join.resolved.selection.result_schema((table.schema, table.schema))
    rows = result.to_pylist()
    assert rows
    for row in rows:
        assert row["ten"] == (None if row["R.id"] is None else row["R.id"] * 10)
        matched = row.get("other") is not None and row["R.id"] is not None
        if kind.shows_right and (row["R.id"], row["other"]) in ((1, 3), (1, 2)):
            assert row["apart"] == (2.0 if row["other"] == 3 else None)
        if kind.shows_right and not matched:
            assert row["apart"] is None
