"""Calls that may take long, made in a thread of their own so that the waiting thread can be interrupted.

A thread inside gRPC does not notice Ctrl-C. So the user's thread never enters gRPC: it hands the call over and waits in
Python, where it also notices that the topology has failed.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class BackgroundCalls:
    """Makes calls one after the other, in the order of `submit`."""

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Hand a call over; the future gets its outcome."""
        future: Future[Any] = Future()
        self._waiting.put((future, call))
        return future

    def close(self, timeout: float) -> None:
        """End the thread after the calls handed over so far; wait at most `timeout` seconds for it."""
        self._waiting.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                outcome = call()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(outcome)
            del future, call, item
