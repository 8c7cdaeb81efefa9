"""The user's own functions: Python functions over Arrow arrays, called like SQL functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from inspect import signature
from typing import Any, overload

import pyarrow as pa

from operators.query.constants import identifier
from operators.query.errors import PredicateError
from operators.query.expressions import Call, Expression, as_expression


class Function:
    """A vectorised function. Called with column expressions it returns an expression, otherwise it computes."""

    def __init__(self, compute: Callable[..., Any], name: str, returns: pa.DataType | None = None) -> None:
        self.compute = compute
        self.name = name
        self.returns = returns
        self.__wrapped__ = compute  # where `inspect.signature` looks
        self.__doc__ = compute.__doc__
        self.__module__ = getattr(compute, "__module__", None) or __name__
        self.__qualname__ = getattr(compute, "__qualname__", name)

    def __call__(self, *arguments: Any) -> Any:
        if any(isinstance(argument, Expression) for argument in arguments):
            return self.call(tuple(as_expression(argument) for argument in arguments))
        return self.compute(*arguments)

    def call(self, arguments: tuple[Expression, ...]) -> Call:
        """The function applied to these arguments; checks their number."""
        call = Call(self, arguments, self.name, self.returns)
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
        return self.__qualname__ if found is self else (Function, (self.compute, self.name, self.returns))


@overload
def function(
    compute: Callable[..., Any], name: str | None = None, *, returns: pa.DataType | None = None
) -> Function: ...
@overload
def function(
    compute: None = None, name: str | None = None, *, returns: pa.DataType | None = None
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    compute: Callable[..., Any] | None = None, name: str | None = None, *, returns: pa.DataType | None = None
) -> Function | Callable[[Callable[..., Any]], Function]:
    """Make a condition or a value from a Python function; also usable as a decorator.

    With ``near = function(f)``, ``near(R.x, S.x)`` is a condition. With ``function(g, returns=pa.float64())`` it is a
    value, which can be compared, computed with and selected.

    compute: takes one Arrow array per argument, all of one length, and returns one value per row, as an Arrow or NumPy
             array. For a condition these are booleans, and null is unknown. It must depend on its arguments alone, and
             is called with rows or candidate pairs in batches of any size. It may be defined anywhere, also in a
             script, a notebook or another function; on a cluster it is sent with the values that it refers to.
    name:    its name in SQL text and in plans; the function's own name by default.
    returns: the Arrow type of its values; None for a condition.
    """
    if returns is not None and not isinstance(returns, pa.DataType):
        raise PredicateError(f"function(returns=..) takes an Arrow type such as pa.float64(), not {returns!r}")
    if compute is None:
        return lambda given: function(given, name, returns=returns)
    if not callable(compute):
        raise PredicateError(f"function() takes a Python function over Arrow arrays, not {compute!r}")
    if isinstance(compute, Function):
        if name in (None, compute.name) and returns in (None, compute.returns):
            return compute
        return Function(compute, str(name or compute.name), returns or compute.returns)
    own: str = getattr(compute, "__name__", type(compute).__name__)
    return Function(compute, name or own.strip("<>"), returns)
