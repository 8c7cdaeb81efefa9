"""Float64 arithmetic as written, on whole columns.

A program is a list of (operation, constant). Four operations are enough: in float64 ``x - c`` is ``x + (-c)``, ``-x``
is ``x * -1`` and ``c - x`` is ``(x - c) * -1``, bit for bit (except for the sign of zero, which no comparison sees).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from operators.query.errors import PredicateError
from operators.query.predicate import ConstantValue, Operation
from operators.values.key_types import KeyType

ADD, MULTIPLY, DIVIDE, ADD_PROBE = range(4)
FLOATS, INTEGERS, UNSIGNED = range(3)  # the domain of a key

Program = tuple[tuple[int, float], ...]

_TOP_BIT = np.int64(-(2**63))


def domain_of(kind: KeyType) -> int:
    """The domain of a column's keys."""
    if kind.is_float:
        return FLOATS
    return UNSIGNED if kind.offset else INTEGERS


def program_of(operations: Iterable[Operation]) -> Program:
    """The written operations as a program."""
    program: list[tuple[int, float]] = []
    for operation in operations:
        constant = _as_float(operation.constant)
        match operation.operator:
            case "+":
                program.append((ADD, constant))
            case "-":
                program.append((ADD, -constant))
            case "from":
                program.extend([(ADD, -constant), (MULTIPLY, -1.0)])
            case "*":
                program.append((MULTIPLY, constant))
            case "/":
                program.append((DIVIDE, constant))
            case "negate":
                program.append((MULTIPLY, -1.0))
    return tuple(program)


def _as_float(constant: ConstantValue) -> float:
    assert isinstance(constant, (int, float))
    try:
        return float(constant)
    except OverflowError:
        raise PredicateError(f"{constant} is too large for float arithmetic") from None


@dataclass(frozen=True)
class FloatValue:
    """A float64 expression of one key column."""

    domain: int
    program: Program

    def of(self, keys: np.ndarray) -> np.ndarray:
        values = keys
        if self.domain == INTEGERS:
            values = keys.astype(np.float64)
        elif self.domain == UNSIGNED:
            values = (keys ^ _TOP_BIT).view(np.uint64).astype(np.float64)
        if not self.program:
            return values
        with np.errstate(all="ignore"):
            for operation, constant in self.program:
                if operation == ADD:
                    values = values + constant
                elif operation == MULTIPLY:
                    values = -values if constant == -1.0 else values * constant
                else:
                    values = values / constant
        return values
