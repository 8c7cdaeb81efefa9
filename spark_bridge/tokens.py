"""How the Python processes that Spark starts learn the tokens of endpoints.

Spark plans a read or a write of a Python data source in processes of its own, which do not see the session's
configuration. What they do get is the class that was registered, as a pickle. So a data source that is made with
`CarriesTokens` takes the session's tokens along when Spark pickles it, that is, in `spark.dataSource.register(..)`.
There they are in no plan, no page and no event log.

Tasks also get the configuration of the session that started their query, and what they find there comes first.
"""

from __future__ import annotations

import copyreg
from abc import ABCMeta
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_bridge.options import TOKEN
from topology import AuthenticationError, Handle


class CarriesTokens(ABCMeta):
    """The type of data sources whose pickles carry tokens.

    tokens: by name of setting; those of `connect_spark`, or of the session that registered the class.
    """

    tokens: Mapping[str, str] = {}

    def with_tokens(cls, tokens: Mapping[str, str]) -> CarriesTokens:
        """Return the same data source with these tokens."""
        return type(cls)(cls.__name__, (cls,), {"tokens": dict(tokens), "__module__": cls.__module__})


def _reduced(cls: CarriesTokens) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
    tokens = {**cls.tokens, **session_tokens()}
    return (_restored, (cls.__module__, cls.__qualname__, tokens)) if tokens else cls.__qualname__


def _restored(module: str, name: str, tokens: Mapping[str, str]) -> CarriesTokens:
    import importlib

    cls: CarriesTokens = getattr(importlib.import_module(module), name)
    return cls.with_tokens(tokens)


copyreg.pickle(CarriesTokens, _reduced)


def session_tokens() -> dict[str, str]:
    """The tokens in the configuration of the active session; none where there is no session."""
    try:
        settings: Mapping[str, str] = SparkSession.active().conf.getAll
    except (PySparkException, AssertionError):
        return {}
    return {key: value for key, value in settings.items() if key == TOKEN or key.startswith(f"{TOKEN}.")}


def token_for(name: str, tokens: Mapping[str, str]) -> str:
    """Return the token of a stream or sink: that of the running Spark task, or else one that the data source carries.

    Raises an `AuthenticationError` that says where to set it.
    """
    task = TaskContext.get()
    for key in (f"{TOKEN}.{name}", TOKEN):
        token = (task is not None and task.getLocalProperty(key)) or tokens.get(key)
        if token:
            return token
    raise AuthenticationError(
        f"'{name}': Spark's configuration has no token: call connect_spark(spark, running); or call "
        f'spark.conf.set("{TOKEN}", str(running.endpoint("{name}").token)) and after that '
        f"spark.dataSource.register(InterlaceDataSource)"
    )


def topology_tokens(running: Handle) -> dict[str, str]:
    """The tokens of all streams and sinks of a topology; those of streams may also commit and finish them."""
    names = [*running.topology.inputs, *running.topology.sinks]
    return {f"{TOKEN}.{name}": str(running.endpoint(name, control=True).token) for name in names}
