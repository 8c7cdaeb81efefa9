"""Sends the description of a topology to the processes of a cluster, with the user's code in it."""

from __future__ import annotations

import io
import pickle
from typing import Any

from topology.graph import by_value
from topology.graph.errors import MissingPackageError, UnpicklableError
from topology.process.without_pandas import WITHOUT_PANDAS, show_pandas


def dumps(description: object) -> bytes:
    """Pickle a topology, or an order that holds one, with the user's functions and classes (see graph/by_value)."""
    try:
        return by_value.dumps(description)
    except Exception as error:
        raise UnpicklableError(
            f"the topology cannot be sent to another process ({error}): open files, sockets and locks in build(), "
            f"or in the function that uses them"
        ) from error


class _Unpickler(pickle.Unpickler):
    """Lets Arrow use pandas as soon as it meets code that is not ours."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in WITHOUT_PANDAS:
            show_pandas()
        return super().find_class(module, name)


def loads(data: bytes) -> Any:
    """Unpickle what the launching program has sent through Ray."""
    try:
        return _Unpickler(io.BytesIO(data)).load()  # from the program that launched the topology, through Ray
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise MissingPackageError(
            f"the code of the topology imports '{error.name}', which this machine lacks: install '{package}' on every "
            f"machine of the cluster, as it is installed where the topology was launched"
        ) from error
