"""Results in files and pipes: every format, and files that appear whole or not at all."""

from __future__ import annotations

import io
import json
import stat
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from interlace.files.errors import FileError
from interlace.files.formats import FORMATS, Format
from interlace.files.json_text import json_lines
from interlace.files.read_options import ReadOptions
from interlace.files.tables import FileTable
from interlace.files.writing import NewFile, writer_to

TABLE = pa.table({"id": [1, 2, 3], "who": ["ann", 'b"o,b', None], "ts": pa.array([0, 1, 2], pa.timestamp("us"))})


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_can_be_read_again(tmp_path: Path, kind: Format) -> None:
    path = tmp_path / f"out.{kind}"
    with NewFile(str(path), TABLE.schema, kind) as file:
        for batch in TABLE.to_batches(max_chunksize=2):
            file.write(batch)
    table = FileTable(str(path), ReadOptions())
    found = pa.Table.from_batches(table.batches(table.schema.names)).cast(TABLE.schema)
    if kind == "csv":  # text is read as it is written
        found = found.set_column(1, "who", pa.array(["ann", 'b"o,b', None]))
    assert found.to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_a_result_without_rows_has_columns(tmp_path: Path, kind: Format) -> None:
    path = tmp_path / f"out.{kind}"
    with NewFile(str(path), TABLE.schema, kind):
        pass
    assert FileTable(str(path), ReadOptions()).schema.names == TABLE.schema.names


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    with NewFile(str(path), TABLE.schema, "csv") as file:
        file.write(TABLE.to_batches()[0])
        assert path.read_text() == "before"
    assert path.read_text().startswith('"id"')
    assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRUSR
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]


def test_a_run_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.write_text("before")

    def failing() -> None:
        with NewFile(str(path), TABLE.schema, "parquet") as file:
            file.write(TABLE.to_batches()[0])
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        failing()
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["out.parquet"]


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written: No such file or directory"):
        NewFile(str(tmp_path / "nowhere" / "out.csv"), TABLE.schema, "csv")


def test_every_type_has_a_form_in_json() -> None:
    row = {
        "int": 1, "float": 0.1, "text": 'a "quoted" ü\n', "yes": True, "none": None, "nan": float("nan"),
        "day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 8), "for": timedelta(seconds=90), "sum": Decimal("1.10"),
        "bytes": b"\x00\xff", "list": [1, 2], "struct": {"a": date(2024, 1, 1)},
    }  # fmt: skip
    batch = pa.RecordBatch.from_pylist([row, dict.fromkeys(row)])
    first, second = (json.loads(line) for line in json_lines(batch).splitlines())
    assert first == {
        **row, "nan": None, "day": "2024-02-29", "at": "2024-02-29T08:00:00", "for": 90.0, "sum": "1.10",
        "bytes": "AP8=", "struct": {"a": "2024-01-01"},
    }  # fmt: skip
    assert second == dict.fromkeys(row)


def test_types_that_csv_lacks_are_written_as_text() -> None:
    out = io.BytesIO()
    schema = pa.schema([("list", pa.list_(pa.int64())), ("for", pa.duration("s")), ("n", pa.int64())])
    writer = writer_to(out, schema, "csv")
    row = {"list": [1, 2], "for": timedelta(seconds=90), "n": 3}
    writer.write(pa.RecordBatch.from_pylist([row, dict.fromkeys(row)], schema=schema))
    assert out.getvalue().decode().splitlines() == ['"list","for","n"', '"[1, 2]","90.0",3', ",,"]
