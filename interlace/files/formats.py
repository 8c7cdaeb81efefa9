"""The formats of files: what their names end in, and what their first bytes are."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal, get_args

from interlace.files.errors import FileError

Format = Literal["parquet", "csv", "jsonl", "arrow"]
FORMATS: tuple[Format, ...] = get_args(Format)

SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".json": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
}  # fmt: skip

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
"""Text files may be compressed; Parquet and Arrow compress by themselves."""


def format_of(path: str) -> Format | None:
    """The format that a file's name says; None if it says none."""
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def require_format(path: str, given: Format | None, option: str) -> Format:
    """The format that the user gives, or else the one that the name says."""
    found = given or format_of(path)
    if found is None:
        raise FileError(f"'{path}' does not say its format: give {option}, one of {', '.join(FORMATS)}")
    return found


def sniff(head: bytes) -> Format:
    """The format of a stream, from its first bytes."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    return "jsonl" if head.lstrip().startswith(b"{") else "csv"
