"""Standard input as a table: every format, and lines as they come."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from interlace.files.errors import FileError
from interlace.files.read_options import ReadOptions
from interlace.files.standard_input import StandardInput

TABLE = pa.table({"id": [1, 2, 3], "x": [0.5, None, 2.5]})


class Drops(io.BytesIO):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self._size = size

    def read1(self, size: int | None = -1) -> bytes:
        return super().read(self._size)


def piped(content: bytes, size: int = 1 << 20, options: ReadOptions | None = None) -> list[dict[str, object]]:
    table = StandardInput("-", Drops(content, size), options or ReadOptions())
    return [row for batch in table.batches(table.schema.names) for row in batch.to_pylist()]


def arrow_stream() -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return out.getvalue()


def parquet_file() -> bytes:
    out = io.BytesIO()
    pa.parquet.write_table(TABLE, out)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"id,x\n1,0.5\n2,\n3,2.5\n",
        b"id,x\n1,0.5\n2,\n3,2.5",
        b'{"id": 1, "x": 0.5}\n{"id": 2, "x": null}\n{"id": 3, "x": 2.5}\n',
        arrow_stream(),
        parquet_file(),
    ],
    ids=["csv", "csv without a last line break", "jsonl", "arrow", "parquet"],
)
def test_every_format_is_recognised(content: bytes) -> None:
    assert piped(content) == TABLE.to_pylist()


@pytest.mark.parametrize("size", [11, 12, 17, 100])
def test_lines_may_come_in_any_pieces(size: int) -> None:
    content = b'id,text\n1,plain\n2,"two\nlines"\n3,last\n'
    expected = [{"id": 1, "text": "plain"}, {"id": 2, "text": "two\nlines"}, {"id": 3, "text": "last"}]
    assert piped(content, size) == expected


def test_rows_come_before_the_stream_has_ended() -> None:
    pipe = Drops(b"n\n1\n2\n3\n", 4)
    batches = StandardInput("-", pipe, ReadOptions()).batches(["n"])
    assert next(batches).to_pylist() == [{"n": 1}]
    assert pipe.tell() == 4


def test_a_value_of_another_type_names_the_remedy() -> None:
    with pytest.raises(FileError, match="name the type of that column"):
        piped(b"n\n1\n2.5\n", 4)
    assert piped(b"n\n1\n2.5\n", 4, ReadOptions(types={"n": "double"})) == [{"n": 1.0}, {"n": 2.5}]


@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(format="jsonl")])
def test_an_empty_stream_is_refused(options: ReadOptions) -> None:
    with pytest.raises(FileError, match="'-' is empty"):
        piped(b"", options=options)
