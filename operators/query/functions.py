"""User-defined conditions: Python functions over Arrow arrays, called like SQL functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from inspect import signature
from typing import Any

from operators.query.constants import identifier
from operators.query.errors import PredicateError
from operators.query.expressions import Call, Expression, as_expression


class Function:
    """A vectorised condition. Called with column expressions it returns a condition, otherwise it computes."""

    def __init__(self, compute: Callable[..., Any], name: str) -> None:
        self.compute = compute
        self.name = name
        self.__wrapped__ = compute  # where `inspect.signature` looks
        self.__doc__ = compute.__doc__
        self.__module__ = getattr(compute, "__module__", None) or __name__
        self.__qualname__ = getattr(compute, "__qualname__", name)

    def __call__(self, *arguments: Any) -> Any:
        if any(isinstance(argument, Expression) for argument in arguments):
            return self.call(tuple(as_expression(argument) for argument in arguments))
        return self.compute(*arguments)

    def call(self, arguments: tuple[Expression, ...]) -> Call:
        """The function applied to these arguments, as a condition; checks their number."""
        call = Call(self, arguments, self.name)
        try:
            parameters = signature(self.compute)
        except ValueError:  # some C functions have no signature
            return call
        try:
            parameters.bind(*arguments)
        except TypeError as error:
            raise PredicateError(f"`{call!r}` does not fit the function: {error}") from None
        return call

    def __repr__(self) -> str:
        return f"function({identifier(self.name)})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Used as a decorator it replaces the function that it wraps, so pickle cannot find that function by its name.
        try:
            found: Any = reduce(getattr, self.__qualname__.split("."), sys.modules[self.__module__])
        except (AttributeError, KeyError):
            found = None
        return self.__qualname__ if found is self else (Function, (self.compute, self.name))


def function(compute: Callable[..., Any], name: str | None = None) -> Function:
    """Make a condition from a Python function; also usable as a decorator.

    With ``near = function(f)``, ``near(R.x, S.x)`` is a condition.

    compute: takes one Arrow array per argument, all of one length, and returns one boolean per row, as an Arrow or
             NumPy array; null is unknown. It must depend on its arguments alone, and is called with candidate pairs
             in batches of any size. It may be defined anywhere, also in a script, a notebook or another function; on
             a cluster it is sent with the values that it refers to.
    name:    its name in SQL text and in plans; the function's own name by default.
    """
    if not callable(compute):
        raise PredicateError(f"function() takes a Python function over Arrow arrays, not {compute!r}")
    if isinstance(compute, Function):
        return compute if name in (None, compute.name) else Function(compute, str(name))
    own: str = getattr(compute, "__name__", type(compute).__name__)
    return Function(compute, name or own.strip("<>"))
