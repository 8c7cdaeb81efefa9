"""What the columns of a join of frames are called: `left_id` for column `id` of the frame `left`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators import JoinError, StreamJoin


@dataclass(frozen=True)
class FrameColumn:
    """A column of the result that is a column of a frame."""

    frame: str
    column: str


def frame_columns(join: StreamJoin, columns: Mapping[str, Sequence[str]]) -> dict[str, FrameColumn]:
    """The columns of the result that are columns of a frame, by their names in the result.

    columns: those of each frame. Raises a `JoinError` if two columns of the result would have one name.
    """
    found = {}
    selection = join.resolved.selection
    for side, (name, known) in enumerate(columns.items()):
        schema = pa.schema([(column, pa.null()) for column in known])
        for each in selection.columns(side, schema):
            found[each.name] = FrameColumn(name, each.column)
    others = [each.name for each in selection.computed] + [each.name for each in selection.aggregated]
    if selection.counted is not None:
        others.append(selection.counted.name)
    names = new_names([*found, *others], found)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise JoinError(
            f"two columns of the result would be called '{twice}': give one another name in select=, with .alias(..), "
            "or the frames other names, with names="
        )
    return found


def new_names(names: Sequence[str], columns: Mapping[str, FrameColumn]) -> list[str]:
    """The names of the result's columns, without the dot between frame and column."""
    new = []
    for name in names:
        origin = columns.get(name)
        plain = origin is not None and name == f"{origin.frame}.{origin.column}"
        new.append(f"{origin.frame}_{origin.column}" if origin is not None and plain else name)
    return new
