"""`interlace sql`: the same rows as DuckDB over the same files, and messages that help."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from operators import StreamJoin
from tests.interlace.command_line.invoking import invoke
from tests.realdata import FOLDER, realdata

START = datetime(2024, 2, 29, 8)


def readings(seed: int, rows: int = 200, *, shuffled: bool = False) -> pa.Table:
    """Rows with ties, nulls and, if shuffled, event times in no order."""
    rng = random.Random(seed)
    made = [
        {
            "id": number,
            "ts": START + timedelta(seconds=rng.randrange(600)),
            "power": rng.choice([None, *range(12)]),
            "cool": rng.choice([None, 0.5, 1.0, 2.5, 7.25]),
            "who": rng.choice(["ann", "bob", "eve"]),
        }
        for number in range(rows)
    ]
    if not shuffled:
        made.sort(key=lambda row: row["ts"])
    schema = [("id", pa.int64()), ("ts", pa.timestamp("us")), ("power", pa.int64()), ("cool", pa.float64())]
    return pa.Table.from_pylist(made, pa.schema([*schema, ("who", pa.string())]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the same kind of readings in every format."""
    pa.parquet.write_table(readings(1), tmp_path / "r.parquet", row_group_size=37)
    pa.csv.write_csv(readings(2), tmp_path / "s.csv")
    pa.csv.write_csv(readings(3, shuffled=True), tmp_path / "mixed.csv")
    pa.feather.write_feather(readings(4), str(tmp_path / "t.arrow"))
    rows = readings(5).to_pylist()
    lines = [json.dumps({**row, "ts": row["ts"].isoformat(sep=" ")}) for row in rows]
    (tmp_path / "j.jsonl").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def joined(query: str, *options: str, input: bytes | None = None) -> Counter[tuple[str, ...]]:
    """The rows of a query, without a header."""
    result = invoke("sql", query, *options, input=input)
    assert result.exit_code == 0, result.stderr
    return Counter(map(tuple, list(csv.reader(io.StringIO(result.stdout)))[1:]))


def by_duckdb(query: str) -> Counter[tuple[str, ...]]:
    with duckdb.connect() as connection:
        connection.register("t.arrow", readings(4))
        rows = connection.execute(query).fetchall()
    return Counter(tuple("" if value is None else str(value) for value in row) for row in rows)


WITHIN = "abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 30000000"
CASES = [
    ("'r.parquet' a, 's.csv' b", "a.power < b.power AND a.cool > b.cool"),
    ("'s.csv' a, 'mixed.csv' b", "abs(a.power - b.power) <= 1 AND a.who = b.who"),
    ("'mixed.csv' a, 'mixed.csv' b", "a.power < b.power AND a.cool >= b.cool AND a.id != b.id"),
    ("'t.arrow' a, 'r.parquet' b", "a.power = b.power AND b.who IN ('ann', 'eve')"),
    ("'j.jsonl' a, 't.arrow' b", "a.cool * 2 > b.power OR a.who = b.who"),
]


@pytest.mark.parametrize(("files", "condition"), CASES)
def test_a_join_of_files_is_that_of_duckdb(folder: Path, files: str, condition: str) -> None:
    query = f"SELECT a.id, b.id FROM {files} WHERE ({condition})"
    found = joined(f"{query} WINDOW AS (INTERVAL '30 s')", "--event-time", "ts")
    assert found == by_duckdb(f"{query} AND {WITHIN}")
    assert found.total() > 10


LAWFUL = [
    "SELECT a.id, b.id FROM 'mixed' a, 's' b WHERE a.power < b.power WINDOW AS (ROWS 7)",
    "SELECT a.id, b.id FROM 's' a, 'mixed' b WHERE a.power < b.power WINDOW AS (SLIDE ROWS 3 ON 9)",
    "SELECT a.id, b.id FROM 'mixed' a, 'mixed' b WHERE a.who = b.who WINDOW AS (ROWS 2 PER KEY)",
    "SELECT a.id, b.id FROM 'mixed' a FULL JOIN 's' b ON a.power = b.power WINDOW AS (INTERVAL '20 s')",
    "SELECT a.id, COUNT(*) AS n FROM 'mixed' a, 's' b WHERE a.cool < b.cool WINDOW AS (TUMBLE INTERVAL '1 min')",
]


@pytest.mark.parametrize("query", LAWFUL)
def test_rows_and_their_order_are_those_of_a_join_of_sorted_tables(folder: Path, query: str) -> None:
    tables = {"mixed": readings(3, shuffled=True).sort_by("ts"), "s": readings(2)}
    join = StreamJoin.from_sql(query.replace("'mixed'", "mixed").replace("'s'", "s"), event_time="ts")
    expected = join.collect({stream: tables[stream] for stream in join.stream_names})
    result = invoke("sql", query.replace("'mixed'", "'mixed.csv'").replace("'s'", "'s.csv'"), "-t", "ts", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == expected.to_pylist()
    assert expected.num_rows > 20


def test_without_a_window_every_pair_is_found(folder: Path) -> None:
    query = "SELECT a.id, b.id, a.power FROM 'r.parquet' a, 's.csv' b WHERE a.power < b.power AND a.cool > b.cool"
    assert joined(query) == by_duckdb(query)


def test_three_files_are_joined_as_duckdb_does(folder: Path) -> None:
    files = "FROM 'r.parquet' a, 'mixed.csv' b, 's.csv' c"
    condition = "a.power = b.power AND b.cool = c.cool AND a.id < c.id AND c.id < 40"
    query = f"SELECT a.id, b.id, c.power {files} WHERE {condition}"
    found = joined(query, "--event-time", "ts")
    assert found == by_duckdb(query)
    assert found.total() > 50
    explained = invoke("sql", f"{query} WINDOW a AS (ROWS 9), b AS (INTERVAL '1 min'), c AS (ROWS 9)", "--explain")
    assert "join of a, b, c" in explained.stdout
    assert "a.power = b.power: by keys of a and b" in explained.stdout
    failed = invoke("sql", f"SELECT a.wrong {files} WHERE a.power = b.power")
    assert "'r.parquet' (a) has no column 'wrong'" in failed.stderr


def test_outer_joins_fill_with_nulls_as_duckdb_does(folder: Path) -> None:
    query = "SELECT a.id, b.id FROM 'r.parquet' a LEFT JOIN 's.csv' b ON a.power = b.power AND a.cool > b.power"
    assert joined(query) == by_duckdb(query)


def test_directories_globs_and_standard_input_are_joined(folder: Path) -> None:
    (folder / "parts").mkdir()
    table = readings(6)
    for number in range(4):
        pa.parquet.write_table(table.slice(number * 50, 50), folder / "parts" / f"{number}.parquet")
    condition = "a.power < b.power AND a.cool > b.cool"
    expected = by_duckdb(f"SELECT a.id, b.id FROM 'parts/*.parquet' a, 's.csv' b WHERE {condition} AND {WITHIN}")
    window = "WINDOW AS (INTERVAL '30 s')"
    assert joined(f"SELECT a.id, b.id FROM 'parts' a, 's.csv' b WHERE {condition} {window}") == expected
    assert joined(f"SELECT a.id, b.id FROM 'parts/*.parquet' a, 's.csv' b WHERE {condition} {window}") == expected
    query = f"SELECT a.id, b.id FROM parts a, '-' b WHERE {condition} {window}"
    assert joined(query, input=(folder / "s.csv").read_bytes()) == expected
    query = f"SELECT a.id, b.id FROM R a, S b WHERE {condition} {window}"
    assert joined(query, "-i", "R=parts", "-i", "S=s.csv") == expected


def test_a_file_with_two_names_is_two_streams_and_with_one_is_joined_with_itself(folder: Path) -> None:
    (folder / "n.csv").write_text("n\n1\n2\n")
    itself = joined("SELECT a.n, b.n FROM 'n.csv' a, './n.csv' b WHERE a.n <= b.n")
    assert itself == Counter({("1", "2"): 1})
    twice = joined("SELECT R.n, S.n FROM R, S WHERE R.n <= S.n", "-i", "R=n.csv", "-i", "S=n.csv")
    assert twice == Counter({("1", "1"): 1, ("1", "2"): 1, ("2", "2"): 1})


def test_rows_out_of_order_within_a_bound_need_no_sorting(folder: Path) -> None:
    query = "SELECT a.id, b.id FROM 'mixed.csv' a, 's.csv' b WHERE a.power < b.power WINDOW AS (INTERVAL '30 s')"
    sorted_first = invoke("sql", query)
    assert "note: 'mixed.csv' is not in the order of ts: sorting it" in sorted_first.stderr
    bounded = invoke("sql", query, "-t", "ts", "--out-of-order", "10min")
    assert "sorting" not in bounded.stderr
    assert Counter(bounded.stdout.splitlines()) == Counter(sorted_first.stdout.splitlines())
    short = invoke("sql", query, "-t", "ts", "--out-of-order", "a=1min")
    assert "rows are further out of order than the bound and take no part" in short.stderr


def test_a_file_that_is_said_to_be_sorted_and_is_not_fails(folder: Path) -> None:
    query = "SELECT a.id, b.id FROM 'mixed.csv' a, 's.csv' b WHERE a.power < b.power WINDOW AS (INTERVAL '30 s')"
    failed = invoke("sql", query, "--sorted", "-o", "out.csv")
    assert failed.exit_code == 1
    assert "goes backwards at row" in failed.stderr
    assert failed.stderr.endswith(": sort it, or give --out-of-order with how far rows may go back\n")
    assert "Traceback" not in failed.stderr
    assert not list(folder.glob("*out.csv*"))


def test_rows_without_an_event_time_are_counted(folder: Path) -> None:
    for name, times in (("sorted", [1.0, None, None, 2.0]), ("mixed", [2.0, float("nan"), None, 1.0])):
        pa.parquet.write_table(pa.table({"t": times, "n": range(len(times))}), folder / f"{name}.parquet")
        query = f"SELECT a.n, b.n FROM '{name}.parquet' a, '{name}.parquet' b WHERE a.n < b.n WINDOW AS (INTERVAL '9')"
        result = invoke("sql", query, "-t", "t")
        assert len(result.stdout.splitlines()) == 2
        assert f"note: {len(times) - 2:,} rows have no event time and take no part in the join" in result.stderr


def test_event_times_of_different_types_are_one(folder: Path) -> None:
    days = pa.table({"day": pa.array([19782, 19783], pa.date32()), "n": [1, 2]})
    stamps = pa.table({"at": pa.array([1709164800, 1709171200], pa.timestamp("s")), "n": [1, 2]})
    pa.parquet.write_table(days, folder / "days.parquet"), pa.parquet.write_table(stamps, folder / "stamps.parquet")
    query = "SELECT a.n, b.n FROM 'days.parquet' a, 'stamps.parquet' b WHERE a.n <= b.n WINDOW AS (INTERVAL '3 h')"
    assert joined(query, "-t", "a=day", "-t", "b=at") == Counter({("1", "1"): 1, ("1", "2"): 1})


def test_a_file_without_a_header_is_joined(folder: Path) -> None:
    rows = ["1,0.5,2024-01-01 00:00:00", "2,1.5,2024-01-01 00:00:10", "3,9.5,2024-01-01 00:01:00"]
    (folder / "bare.csv").write_text("\n".join(rows) + "\n")
    query = "SELECT a.c0, b.c0 FROM 'bare.csv' a, 'bare.csv' b WHERE a.c1 < b.c1 WINDOW AS (INTERVAL '30 s')"
    assert joined(query, "--no-header") == Counter({("1", "2"): 1})
    query = "SELECT a.id, b.id FROM 'bare.csv' a, 'bare.csv' b WHERE a.x < b.x WINDOW AS (INTERVAL '30 s')"
    assert joined(query, "--columns", "id,x,ts") == Counter({("1", "2"): 1})
    refused = invoke("sql", query)
    assert refused.exit_code == 2
    assert "give --no-header and call its columns c0, c1, .. c2" in refused.stderr


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl", "out.arrow"])
def test_results_go_to_a_file_of_any_format(folder: Path, name: str) -> None:
    query = "SELECT a.id AS x, b.id AS y FROM 'r.parquet' a, 's.csv' b WHERE a.power < b.power WINDOW AS (ROWS 5)"
    expected = joined(query)
    assert invoke("sql", query, "-o", name).stdout == ""
    assert joined(f"SELECT a.x, a.y FROM '{name}' a LEFT SEMI JOIN '{name}' b ON a.x >= 0 AND b.x >= 0") == expected
    summary = json.loads(invoke("sql", query, "-o", name, "--json").stdout)
    assert (summary["output"], summary["rows"]) == (name, expected.total())


def test_formats_and_limits_of_a_pipe(folder: Path) -> None:
    query = "SELECT a.id, b.who FROM 'r.parquet' a, 's.csv' b WHERE a.power < b.power WINDOW AS (ROWS 5)"
    rows = [json.loads(line) for line in invoke("sql", query, "--json", "--limit", "3").stdout.splitlines()]
    assert [list(row) for row in rows] == [["a.id", "b.who"]] * 3
    stream = invoke("sql", query, "--format-out", "arrow").stdout_bytes
    table = pa.ipc.open_stream(stream).read_all()
    assert table.slice(0, 3).to_pylist() == rows


def test_explain_runs_nothing(folder: Path) -> None:
    query = "SELECT a.id FROM 'r.parquet' a, 's.csv' b WHERE a.power < b.power WINDOW AS (INTERVAL '30 s')"
    shown = invoke("sql", query, "--explain").stdout
    assert shown.startswith("join of a and b, order: strict\n  condition  a.power < b.power\n")
    sections = json.loads(invoke("sql", query, "--explain", "--json").stdout)["sections"]
    assert sections[0] == {"name": "condition", "lines": ["a.power < b.power"]}


WHERE = "SELECT a.id FROM 'r.parquet' a, 's.csv' b WHERE "
QUERY = WHERE + "a.id < b.id"
MISTAKES = [
    (WHERE + "a.pwer < b.power", [], 2, "no column 'pwer'; did you mean power?"),
    (WHERE + "a.id + b.id", [], 2, "  SELECT a.id FROM 'r.parquet' a, 's.csv'"),
    (WHERE + "a.who < b.id", [], 2, "(a.who is string, b.id is int64); give --type who=int64"),
    (QUERY.replace("r.p", "q.p"), [], 3, "no file 'q.parquet'; did you mean r.parquet?"),
    (QUERY.replace("'r.parquet'", "readings"), [], 3, "another file, give --input readings=FILE"),
    (QUERY.replace("r.parquet", "s3://r.parquet"), [], 2, "'s3://r.parquet' is not on this machine"),
    (QUERY, ["-t", "c=ts"], 2, "no input 'c'"),
    (QUERY, ["-t", "time"], 2, "no column 'time'"),
    (QUERY, ["-i", "x"], 2, "write NAME=FILE"),
    (QUERY, ["-t", "ts", "--out-of-order", "5m"], 2, "write min"),
    (QUERY, ["--format", "xml"], 2, "one of parquet, csv"),
    (QUERY, ["--type", "id"], 2, "write COLUMN=TYPE"),
    (QUERY, ["-o", "out.xyz"], 2, "give --format-out"),
    (QUERY, ["-o", "no/out.csv"], 2, "cannot be written"),
    ("SELECT a.id FROM 'r.parquet' a", [], 2, "needs two roles"),
    ("no query", [], 2, "a query starts with SELECT"),
]


@pytest.mark.parametrize(("query", "options", "code", "message"), MISTAKES)
def test_a_mistake_gets_a_message_and_a_code(
    folder: Path, query: str, options: list[str], code: int, message: str
) -> None:
    result = invoke("sql", query, *options)
    assert message in result.stderr
    assert result.exit_code == code
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""


def test_a_window_of_time_needs_one_column_of_times(folder: Path) -> None:
    table = readings(7)
    pa.parquet.write_table(table.append_column("end", table["ts"]), folder / "two.parquet")
    query = "SELECT a.id FROM 'two.parquet' a, 's.csv' b WHERE a.id < b.id WINDOW AS (INTERVAL '30 s')"
    refused = invoke("sql", query)
    assert refused.exit_code == 2
    assert "give --event-time COLUMN\n  'two.parquet': ts or end\n" in refused.stderr
    assert "note: event time: ts of s, end of two" not in invoke("sql", query, "-t", "ts").stderr


@pytest.mark.realdata
def test_farther_for_less_money_is_that_of_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    realdata("green_taxi_2023_01.parquet")
    monkeypatch.chdir(FOLDER)
    trips = "'green_taxi_2023_01.parquet'"
    query = (
        f"SELECT a.trip_distance, b.trip_distance, a.fare_amount, b.fare_amount FROM {trips} a, {trips} b "
        "WHERE a.trip_distance > b.trip_distance AND a.fare_amount < b.fare_amount"
    )
    result = invoke("sql", f"{query} WINDOW AS (INTERVAL '5 min')", "-t", "lpep_pickup_datetime", "--json")
    found = Counter(tuple(json.loads(line).values()) for line in result.stdout.splitlines())
    # Trips at most five minutes apart are in the same or in neighbouring fifths of an hour: equalities are quick.
    times = "epoch_us(a.lpep_pickup_datetime)", "epoch_us(b.lpep_pickup_datetime)"
    near = " UNION ALL ".join(
        f"{query} AND {times[0]} // 300000000 = {times[1]} // 300000000 + {step} "
        f"AND abs({times[0]} - {times[1]}) <= 300000000"
        for step in (-1, 0, 1)
    )
    assert found == Counter(duckdb.sql(near).fetchall())
    assert found.total() > 90_000
