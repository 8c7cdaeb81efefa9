"""How to read files that do not say everything about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interlace.files.formats import Format


@dataclass(frozen=True)
class ReadOptions:
    """Settings of one input; those about text files do not matter to others.

    format:       None: what the name of the file says.
    header:       whether a CSV file begins with the names of its columns.
    column_names: the names of the columns of a CSV file without a header; empty: c0, c1, ...
    types:        the types of columns, by name, as Arrow calls them; the others are found by looking at the file.
    time_format:  how times are written in text, as in strptime; None: as in ISO 8601.
    delimiter:    between the columns of a CSV file; None: a tab for .tsv, else a comma.
    """

    format: Format | None = None
    header: bool = True
    column_names: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    time_format: str | None = None
    delimiter: str | None = None
