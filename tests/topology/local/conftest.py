"""Every test here ends without leaving a thread behind."""

import threading
from collections.abc import Iterator

import pytest

from tests.topology.waiting import LONG, done_within


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield

    def left() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread not in before and thread.is_alive()]

    assert done_within(lambda: not left(), LONG), left()
