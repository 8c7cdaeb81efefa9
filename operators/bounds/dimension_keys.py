"""The keys of one side of a dimension. Rows are stored by them before the other side's types are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexes import Keys
from operators.functions.composed_values import encoded
from operators.functions.families import COMPOSED, TEXTS
from operators.query.errors import PredicateError
from operators.query.predicate import Dimension
from operators.values.evaluation import evaluate, type_of
from operators.values.key_types import KeyType, decoded, key_type, keys_of_type
from operators.values.text_keys import text_hashes


def keys_of(dimension: Dimension, side: int, array: pa.Array) -> Keys:
    """The keys of a side's column. Strings and binary that are only compared for equality have their hash as key.

    Cost: O(rows), for strings and binary O(bytes).
    """
    return key_maker(dimension, side, array.type)(array)


def key_maker(dimension: Dimension, side: int, arrow: pa.DataType) -> Callable[[pa.Array], Keys]:
    """A function that makes the keys of a side's columns of one type, as `keys_of` does."""
    computed = dimension.computed[side]
    make = _maker(dimension, value_type(dimension, side, arrow))
    if computed is None:
        return make
    return lambda array: make(evaluate(computed, lambda column: array))


def _maker(dimension: Dimension, kind: KeyType) -> Callable[[pa.Array], Keys]:
    if kind.family == "null":
        return lambda array: Keys(np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_))
    if dimension.is_point and kind.family in (*TEXTS, *COMPOSED):
        return _hashes
    return partial(keys_of_type, kind)


def value_type(dimension: Dimension, side: int, arrow: pa.DataType) -> KeyType:
    """The type of the values that have keys: of the column, or of the function of it."""
    computed = dimension.computed[side]
    if computed is None:
        return key_type(dimension.column(side), arrow)
    found = type_of(computed, lambda column: arrow)
    if pa.types.is_null(found):
        return KeyType(repr(computed), pa.int64(), "null")
    return key_type(repr(computed), found)


def _hashes(array: pa.Array) -> Keys:
    plain = decoded(array)
    valid = pc.is_valid(plain).to_numpy(zero_copy_only=False) if plain.null_count else None
    composed = pa.types.is_nested(plain.type) or pa.types.is_interval(plain.type)
    return Keys(text_hashes(encoded(plain) if composed else plain), valid)


def are_values_needed(arrow: pa.DataType) -> bool:
    """Whether keys of a type may not decide a comparison, so that the values must be available."""
    try:
        return key_type("", arrow).family in (*TEXTS, *COMPOSED, "decimal")
    except PredicateError:  # only a function of it is compared
        return False


def is_settled_by_keys(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether keys alone decide the comparisons of two columns."""
    return not any(key_type("", each).is_lead for each in (left, right))
