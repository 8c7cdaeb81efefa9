"""Files in the FROM of a query become streams, at the same places of the text."""

from __future__ import annotations

import pytest

from interlace.files.query_text import read_query

QUERIES = {
    "SELECT * FROM 'data/trips.parquet' AS a, './stops.csv' b WHERE a.s IN ('u', 'v.csv')": (
        {"trips": "data/trips.parquet", "stops": "./stops.csv"},
        {"a": "trips", "b": "stops"},
    ),
    "SELECT * FROM 'trips.csv' LEFT JOIN 'stops.csv' ON trips.a < stops.b -- FROM 'other.csv'": (
        {"trips": "trips.csv", "stops": "stops.csv"},
        {"trips": "trips", "stops": "stops"},
    ),
    "SELECT * FROM trips.parquet a JOIN './trips.parquet' b ON a.x < b.x": (
        {"trips": "trips.parquet"},
        {"a": "trips", "b": "trips"},
    ),
    "SELECT * FROM 'a/t.csv' x, 'b/t.csv' y WHERE x.a < y.a": (
        {"a/t.csv": "a/t.csv", "b/t.csv": "b/t.csv"},
        {"x": "a/t.csv", "y": "b/t.csv"},
    ),
    "SELECT * FROM R, `S` WHERE R.a < S.a": ({"R": "r.csv", "S": "s.csv"}, {"R": "R", "S": "S"}),
    "SELECT power FROM 'rack.csv' WHERE power1 < power2": ({"rack": "rack.csv"}, {"rack": "rack"}),
    "SELECT a.x FROM '-' a, 'results.csv' b WHERE a.x < b.x": (
        {"-": "-", "results.csv": "results.csv"},
        {"a": "-", "b": "results.csv"},
    ),
}


@pytest.mark.parametrize("written", QUERIES)
def test_the_files_of_a_query_are_found(written: str) -> None:
    query = read_query(written, {"R": "r.csv", "S": "s.csv"})
    assert (query.paths, query.roles) == QUERIES[written]
    assert len(query.text) == len(written)
    after = query.text.partition("WHERE")[0].split("--")[0]
    assert "'" not in after


def test_an_error_quotes_the_query_as_it_was_written() -> None:
    query = read_query("SELECT *\nFROM 'a.csv' AS a, 'b.csv' AS b\nWHERE a.x ! b.x", {})
    message = "wrong (line 2)\n  " + query.text.splitlines()[1] + "\n  ^"
    assert query.as_written(message) == "wrong (line 2)\n  FROM 'a.csv' AS a, 'b.csv' AS b\n  ^"
