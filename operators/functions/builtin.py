"""What the table of built-in functions says about each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.functions.arguments import Argument, require
from operators.functions.families import Family

Result = Callable[[Sequence[Argument]], pa.DataType]
"""The type of the result; raises ArgumentError if the arguments do not fit."""

Compute = Callable[[Sequence[pa.Array], Sequence[Argument], pa.DataType], pa.Array]
"""The values: takes the arguments' columns (`arguments.known`), what is known of them, and the type of the result."""


@dataclass(frozen=True)
class Builtin:
    """One built-in function.

    least, most: how many arguments it takes; None: any number.
    keeps_null:  whether the result is null wherever an argument is; otherwise the function says what null does.
    written:     how a call is spelt, if not as ``name(..)``: with ``{0}`` for the first argument.
    """

    name: str
    summary: str
    least: int
    most: int | None
    result: Result
    compute: Compute
    keeps_null: bool = True
    aliases: tuple[str, ...] = ()
    written: str | None = None


def taking(result: pa.DataType | int | None, *families: tuple[str, tuple[Family, ...]]) -> Result:
    """A rule: the arguments have these families; the result has a fixed type, or the type of an argument."""

    def rule(arguments: Sequence[Argument]) -> pa.DataType:
        require(arguments, families)
        if isinstance(result, pa.DataType):
            return result
        return arguments[result or 0].kind

    return rule


def by_distinct(
    rows: int,
    parameters: Sequence[pa.Array],
    kind: pa.DataType,
    compute: Callable[[np.ndarray, Sequence[object]], pa.Array],
) -> pa.Array:
    """Call ``compute(rows, values)`` once for each distinct combination of parameters; null where one is null.

    Arrow's functions take patterns and lengths as constants. Cost: O(rows), and one call per distinct combination.
    """
    codes = np.zeros(rows, np.int64)
    valid = np.ones(rows, np.bool_)
    values = []
    for parameter in parameters:
        encoded = parameter.dictionary_encode()
        found = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        valid &= parameter.is_valid().to_numpy(zero_copy_only=False)
        codes = codes * max(len(encoded.dictionary), 1) + found
        values.append((found, encoded.dictionary.to_pylist()))
    places = np.flatnonzero(valid)
    if not len(places):
        return pa.nulls(rows, kind)
    order = places[np.argsort(codes[places], kind="stable")]
    borders = np.flatnonzero(np.diff(codes[order])) + 1
    pieces = [
        compute(mine, [listed[found[mine[0]]] for found, listed in values]).cast(kind)
        for mine in np.split(order, borders)
    ]
    back = np.full(rows, -1, np.int64)
    back[order] = np.arange(len(places))
    return pa.concat_arrays(pieces).take(pa.array(back, mask=back < 0))
