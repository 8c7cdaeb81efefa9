"""What a call waits for before it is answered: everything that it says is there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from tests.topology.waiting import SHORT
from topology.durable.group_commit import Ticket
from topology.durable.record import Position
from topology.entry.recorder import Recorder
from topology.journal.events import Event
from topology.journal.journal import Journal


class SlowJournal:
    """Nothing in it is ever durable."""

    trouble = None

    def record(self, event: Event) -> Ticket:
        return Ticket(Position(1, 1))


def test_who_is_told_the_same_again_waits_for_the_thread_that_recorded_it() -> None:
    recorder = Recorder(cast(Journal, SlowJournal()))
    with ThreadPoolExecutor(1) as another:
        another.submit(recorder.opened, "R", "R-0").result()
    recorder.wait(SHORT)  # this thread has recorded nothing
    recorder.repeated()
    with pytest.raises(TimeoutError, match="not durable"):
        recorder.wait(SHORT)
