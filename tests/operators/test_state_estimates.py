from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin, TimeWindow, UnboundedStateWarning, UnboundedWindow
from operators.query.windows import Window
from operators.state_estimates import row_bytes, rows_in_words, warn_of_unbounded_state


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (CountWindow(1000, 10), "the last 1,000 rows"),
        (CountWindow(9, per_key=True), "the last 9 rows of each key, and what came since the oldest of them"),
        (TimeWindow("10 min"), "the rows of the last 10 min"),
        (TimeWindow(60, 5), "the rows of the last 60"),
        (UnboundedWindow(), "every row, for ever"),
    ],
)
def test_a_window_says_which_rows_it_holds(window: Window, words: str) -> None:
    assert rows_in_words(window) == words


def test_a_row_takes_what_finds_it_and_what_is_kept_of_it() -> None:
    found = row_bytes(2, 0)
    assert row_bytes(3, 0) == found + 16
    schema = pa.schema({"a": pa.int64(), "b": pa.bool_(), "c": pa.decimal128(5, 2), "d": pa.string(), "e": pa.null()})
    assert row_bytes(2, schema) == found + 8 + 1 + 16 + 24
    nested = pa.struct({"x": pa.int16(), "y": pa.list_(pa.int8())})
    assert row_bytes(2, pa.schema({"a": nested, "b": pa.dictionary(pa.int32(), pa.string())})) == found + 26 + 4
    assert row_bytes(2, None) == found


def test_an_unbounded_window_warns_of_what_it_costs() -> None:
    with pytest.warns(UnboundedStateWarning) as caught:
        warn_of_unbounded_state("R", UnboundedWindow(), 2, pa.schema({"id": pa.int64()}))
    assert str(caught[0].message) == (
        "the window of 'R' is unbounded: every row of it is kept for ever, about 96 bytes a row, 96 MB for a million "
        "rows. Give 'R' a TimeWindow or a CountWindow, or, if its rows are few, ignore the category "
        "UnboundedStateWarning"
    )
    assert caught[0].filename == __file__


def test_a_join_that_never_forgets_warns_when_it_is_launched() -> None:
    join = StreamJoin("R", "S", "R.a < S.a", (CountWindow(5), UnboundedWindow()), select=["R.a", "S.a", "S.b"])
    with pytest.warns(UnboundedStateWarning, match="the window of 'S' is unbounded.*about 88 bytes") as caught:
        join.launch().stop()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_bounded_run_and_bounded_windows_warn_of_nothing() -> None:
    rows = pa.table({"a": [1, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = StreamJoin("R", "S", "R.a < S.a", UnboundedWindow()).collect({"R": rows, "S": rows})
        StreamJoin("R", "S", "R.a < S.a", CountWindow(3)).launch().stop()
    assert result.num_rows == 1
