"""Files as tables: formats, directories and globs, the types of text, and messages about what is wrong."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from interlace.files import csv_columns
from interlace.files.errors import FileError, MissingFileError
from interlace.files.read_options import ReadOptions
from interlace.files.tables import FileTable

ROWS = [{"id": 1, "x": 0.5}, {"id": 2, "x": None}, {"id": 3, "x": 2.5}]
TABLE = pa.Table.from_pylist(ROWS)


def rows_of(path: Path | str, options: ReadOptions | None = None) -> list[dict[str, object]]:
    table = FileTable(str(path), options or ReadOptions())
    return [row for batch in table.batches(table.schema.names) for row in batch.to_pylist()]


def write(path: Path) -> Path:
    match path.suffix:
        case ".parquet":
            pa.parquet.write_table(TABLE, path)
        case ".arrow":
            pa.feather.write_feather(TABLE, str(path))
        case ".csv":
            path.write_text("id,x\n1,0.5\n2,\n3,2.5\n")
        case ".jsonl":
            path.write_text('{"id": 1, "x": 0.5}\n{"id": 2}\n{"id": 3, "x": 2.5}\n')
        case ".gz":
            path.write_bytes(gzip.compress(b"id,x\n1,0.5\n2,\n3,2.5\n"))
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.csv", "t.jsonl", "t.csv.gz"])
def test_a_file_of_every_format_is_read(tmp_path: Path, name: str) -> None:
    assert rows_of(write(tmp_path / name)) == ROWS


def test_only_the_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    table = FileTable(str(write(tmp_path / "t.parquet")), ReadOptions())
    assert [batch.schema.names for batch in table.batches(["x"])] == [["x"]]
    assert table.rows == 3


def test_a_directory_and_a_glob_are_their_files_in_the_order_of_names(tmp_path: Path) -> None:
    for name, first in (("b.csv", 20), ("a.csv", 10), ("c.csv", 30)):
        (tmp_path / name).write_text(f"n\n{first}\n{first + 1}\n")
    (tmp_path / ".hidden.csv").write_text("other\n1\n")
    expected = [{"n": n} for n in (10, 11, 20, 21, 30, 31)]
    assert rows_of(tmp_path) == expected
    assert rows_of(tmp_path / "[ab].csv") == expected[:4]


def test_files_of_several_formats_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "t.csv"), write(tmp_path / "t.parquet")
    with pytest.raises(FileError, match=r"several formats \(csv, parquet\)"):
        rows_of(tmp_path)


def test_a_file_that_is_missing_is_named_with_one_that_is_close(tmp_path: Path) -> None:
    write(tmp_path / "trips_2023.parquet")
    with pytest.raises(MissingFileError, match=r"no file '.*trips\.parquet'; did you mean trips_2023\.parquet\?"):
        rows_of(tmp_path / "trips.parquet")
    with pytest.raises(MissingFileError, match="no file matches"):
        rows_of(tmp_path / "*.csv")
    with pytest.raises(MissingFileError, match="and no directory"):
        rows_of(tmp_path / "nowhere" / "trips.parquet")


def test_a_name_that_says_no_format_needs_one(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("n\n1\n")
    with pytest.raises(FileError, match="does not say its format: give --format"):
        rows_of(tmp_path / "data")
    assert rows_of(tmp_path / "data", ReadOptions(format="csv")) == [{"n": 1}]


def test_times_in_csv_are_parsed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n2013-01-01 00:02:00,2013-01-01T00:02:00.25\n")
    assert FileTable(str(path), ReadOptions()).schema.types == [pa.timestamp("us")] * 2
    path.write_text("a\n24.12.2013 18:30\n")
    assert rows_of(path, ReadOptions(time_format="%d.%m.%Y %H:%M")) == [{"a": datetime(2013, 12, 24, 18, 30)}]


def test_a_csv_file_without_a_header_gets_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ann,0.50,0.50\nbob,1.00,2.00\n")
    assert rows_of(path, ReadOptions(header=False))[1] == {"c0": "bob", "c1": 1.0, "c2": 2.0}
    assert rows_of(path, ReadOptions(column_names=("who", "x", "y")))[0] == {"who": "ann", "x": 0.5, "y": 0.5}
    with pytest.raises(FileError, match=r"seems to have no header \(its first line holds 0\.50\): give --no-header"):
        rows_of(path)


def test_the_type_of_a_csv_column_fits_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_columns, "FIRST_BYTES", 64)
    path = tmp_path / "t.csv"
    lines = [f"{n},{n},2024-01-01" for n in range(1000)]
    path.write_text("\n".join(["x,y,day", *lines, "0.5,7,2024-01-01 08:00:00", *lines]) + "\n")
    assert FileTable(str(path), ReadOptions()).schema.types == [pa.float64(), pa.int64(), pa.timestamp("us")]
    assert rows_of(path)[1000] == {"x": 0.5, "y": 7, "day": datetime(2024, 1, 1, 8)}


def test_a_value_that_does_not_fit_its_column_names_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n2\n")
    table = FileTable(str(path), ReadOptions())
    path.write_text("x\n1\nmany\n")
    with pytest.raises(FileError, match=r"invalid value 'many': name the type of that column"):
        list(table.batches(["x"]))


def test_the_user_may_name_the_type_of_a_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("zip,n\n01234,1\n")
    assert rows_of(path, ReadOptions(types={"zip": "string", "n": "double"})) == [{"zip": "01234", "n": 1.0}]
    with pytest.raises(FileError, match="'text' is not a type"):
        rows_of(path, ReadOptions(types={"zip": "text"}))


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.jsonl"])
def test_the_type_of_a_column_may_be_named_in_every_format(tmp_path: Path, name: str) -> None:
    assert rows_of(write(tmp_path / name), ReadOptions(types={"id": "double"}))[0] == {"id": 1.0, "x": 0.5}


def test_a_column_that_cannot_have_the_type_is_named(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"who": ["ann"]}), tmp_path / "t.parquet")
    with pytest.raises(FileError, match=r"t\.parquet': Failed to parse string: 'ann'"):
        rows_of(tmp_path / "t.parquet", ReadOptions(types={"who": "int64"}))


def test_line_breaks_in_quotes_and_other_delimiters_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text('a\tb\n"one\ntwo"\t3\n')
    assert rows_of(path) == [{"a": "one\ntwo", "b": 3}]
    path = tmp_path / "t.csv"
    path.write_text("a;b\nx;3\n")
    assert rows_of(path, ReadOptions(delimiter=";")) == [{"a": "x", "b": 3}]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.jsonl"])
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("this is text\n")
    with pytest.raises(FileError, match="cannot be read as"):
        rows_of(tmp_path / name)
