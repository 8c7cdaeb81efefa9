"""The six comparison operators, in one table.

Every fact about them that other modules need is here: an operator with its sides swapped, its negation, which end of
a range it bounds, and how it rounds. Nothing else lists operators by hand.

    ``3 >= x``        mirrored   ``x <= 3``
    ``NOT x <= 3``    negated    ``x > 3``
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from typing import Any, NamedTuple, overload
from typing import Literal as Choice

ComparisonOperator = Choice["<", "<=", ">", ">=", "=", "!="]
Order = Choice["<", "<=", ">", ">="]
"""The operators that bound a range at one end."""


class _Facts(NamedTuple):
    """The facts about one operator.

    mirrored: ``x OP y`` is ``y mirrored x``.
    negated:  ``NOT x OP y`` is ``x negated y``.
    bounds:   the half-lines that meet in the values x of ``x OP y``; for ``!=`` in those of its negation.
    compare:  applies the operator to Python numbers, and to NumPy arrays element by element.
    """

    mirrored: ComparisonOperator
    negated: ComparisonOperator
    bounds: tuple[Order, ...]
    compare: Callable[[Any, Any], Any]


_FACTS: dict[ComparisonOperator, _Facts] = {
    "<":  _Facts(">",  ">=", ("<",), python.lt),
    "<=": _Facts(">=", ">",  ("<=",), python.le),
    ">":  _Facts("<",  "<=", (">",), python.gt),
    ">=": _Facts("<=", "<",  (">=",), python.ge),
    "=":  _Facts("=",  "!=", ("<=", ">="), python.eq),
    "!=": _Facts("!=", "=",  ("<=", ">="), python.ne),
}  # fmt: skip

COMPARE: dict[ComparisonOperator, Callable[[Any, Any], Any]] = {sign: facts.compare for sign, facts in _FACTS.items()}
"""Each operator as a function of Python numbers or NumPy arrays.

Arrays compare signed with unsigned numbers, and with any Python integer, by value.
"""


@overload
def mirrored(operator: Order) -> Order: ...
@overload
def mirrored(operator: ComparisonOperator) -> ComparisonOperator: ...
def mirrored(operator: ComparisonOperator) -> ComparisonOperator:
    """The operator with the sides swapped: ``x < y`` is ``y > x``."""
    return _FACTS[operator].mirrored


def negated(operator: ComparisonOperator) -> ComparisonOperator:
    """The operator under NOT: ``NOT x < y`` is ``x >= y``, and unknown where it is."""
    return _FACTS[operator].negated


def bounds_of(operator: ComparisonOperator) -> tuple[Order, ...]:
    """The half-lines that meet in what an operator accepts: ``x = y`` is ``x <= y`` and ``x >= y``.

    ``!=`` has the bounds of ``=``: they enclose what it excludes.
    """
    return _FACTS[operator].bounds


def is_upper(operator: ComparisonOperator) -> bool:
    """Whether ``x OP y`` bounds x from above only: < and <=."""
    return operator in ("<", "<=")


def is_lower(operator: ComparisonOperator) -> bool:
    """Whether ``x OP y`` bounds x from below only: > and >=."""
    return operator in (">", ">=")


def strict(operator: ComparisonOperator) -> ComparisonOperator:
    """The operator without equality: ``<`` of ``<=``; others as they are."""
    return {"<=": "<", ">=": ">"}.get(operator, operator)  # type: ignore[return-value]


def strict_shift(operator: Order) -> int:
    """Over integers a strict bound is the closed one moved by this: ``x < n`` is ``x <= n - 1``."""
    return {"<": -1, ">": 1}.get(operator, 0)


def rounds_up(operator: Order) -> bool:
    """Whether a bound that x cannot take is rounded up to the next value that it can, else down.

    For integers, ``x < 2.5`` is ``x < 3`` and ``x >= 2.5`` is ``x >= 3``; ``x <= 2.5`` is ``x <= 2``.
    """
    return operator in ("<", ">=")
