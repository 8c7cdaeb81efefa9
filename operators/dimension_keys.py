"""The keys of one side of a dimension, which rows are stored by before the other side's types are known."""

from __future__ import annotations

import pyarrow as pa

from indexes import Keys
from operators.key_types import to_keys
from operators.predicate import Dimension


def keys_of(dimension: Dimension, side: int, array: pa.Array) -> Keys:
    """The keys of a column of a side."""
    return to_keys(dimension.column(side), array)


def is_settled_by_keys(arrow: pa.DataType) -> bool:
    """Whether keys of a type decide a comparison, so that nothing is left to be looked at."""
    return True
