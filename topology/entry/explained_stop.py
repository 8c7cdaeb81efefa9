"""Why a topology has ended, told to those who still call it."""

from __future__ import annotations

from collections.abc import Callable

from topology.graph.errors import StoppedError

Failure = Callable[[], Exception | None]
"""Returns the error that ended a topology; None while there is none."""


class ExplainedStop:
    """Use it around calls of an `Ingest`: the error that ended the topology takes the place of "it has been stopped".

    failure: returns that error; None while there is none.
    """

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __enter__(self) -> None:
        if (failure := self._failure()) is not None:
            raise failure

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StoppedError):
            raise self._failure() or error
