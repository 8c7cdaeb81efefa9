"""Conditions that the user computes: a Python function over Arrow arrays, written like a function of SQL."""

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
    """A vectorised condition; called with columns it stands in a condition, called with anything else it is itself."""

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
        """The condition that the function stands for with these arguments, whose number is checked."""
        call = Call(self, arguments, self.name)
        try:
            parameters = signature(self.compute)
        except ValueError:  # some functions of C do not tell what they take
            return call
        try:
            parameters.bind(*arguments)
        except TypeError as error:
            raise PredicateError(f"`{call!r}` does not fit the function: {error}") from None
        return call

    def __repr__(self) -> str:
        return f"function({identifier(self.name)})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # As a decorator it takes the place of the function that it holds, which pickle then cannot find by its name.
        try:
            found: Any = reduce(getattr, self.__qualname__.split("."), sys.modules[self.__module__])
        except (AttributeError, KeyError):
            found = None
        return self.__qualname__ if found is self else (Function, (self.compute, self.name))


def function(compute: Callable[..., Any], name: str | None = None) -> Function:
    """Make a condition of a Python function; also a decorator.

    With ``near = function(f)``, the call ``near(R.x, S.x)`` stands in a condition.

    compute: takes one Arrow array per argument, all of one length, and returns one boolean per row, as an Arrow or
             NumPy array; null is unknown. It must depend on its arguments alone, and is called with candidate pairs
             in batches of any size.
    name:    how it is shown and, in SQL text, called; the function's own name by default.
    """
    if not callable(compute):
        raise PredicateError(f"function() takes a Python function over Arrow arrays, not {compute!r}")
    if isinstance(compute, Function):
        return compute if name in (None, compute.name) else Function(compute, str(name))
    where = getattr(compute, "__qualname__", "")
    if "<" in where:
        kind = (
            "a lambda"
            if where.endswith("<lambda>")
            else f"{compute.__name__}, which is defined inside another function,"
        )
        raise PredicateError(
            f"{kind} cannot be found by the other processes that a join may run in: "
            "define the condition with def at the top of a module"
        )
    own: str = getattr(compute, "__name__", type(compute).__name__)
    return Function(compute, name or own)
