"""How a sink's worker reports to the one with the journal: who may, what arrives, and what is waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.topology.waiting import LONG, wait_for
from topology import AuthenticationError, Authority, FlightClient, Grant, InputError, Right, StoppedError
from topology.flight import progress_reports
from topology.flight.client_port import ClientPort
from topology.flight.progress_reports import ProgressReports, serve_progress
from topology.graph.errors import StaleStreamError
from topology.handle.endpoint import Endpoint
from topology.handle.results_queue import Progress

LIFE = 3


class Journal:
    """Keeps what is recorded; while `slow` is set, nothing becomes durable."""

    def __init__(self) -> None:
        self.authority = Authority()
        self.channel = self.authority.issue(Grant(Right.CHANNEL))
        self.port = ClientPort(self.authority)
        self.recorded: list[tuple[str, Progress]] = []
        self.durable = threading.Event()
        self.durable.set()
        serve_progress(self.port, LIFE, self._record)

    def endpoint(self) -> Endpoint:
        return self.port.endpoint(self.channel)

    def _record(self, sink: str, progress: Progress) -> None:
        self.recorded.append((sink, progress))
        self.durable.wait(LONG)


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal()
    yield made
    made.durable.set()
    made.port.close()


def test_only_the_latest_progress_is_reported_and_it_is_waited_for(journal: Journal) -> None:
    journal.durable.clear()
    reports = ProgressReports(journal.endpoint(), LIFE)
    reports.report("out", Progress(-1, 7, 0))
    wait_for(lambda: len(journal.recorded) == 1)
    for number in range(100):
        reports.report("out", Progress(number, 8, 1))
    reports.report("late", Progress(4, -1, 0))
    journal.durable.set()
    reports.wait()
    assert journal.recorded == [
        ("out", Progress(-1, 7, 0)), ("out", Progress(99, 8, 1)), ("late", Progress(4, -1, 0)),
    ]  # fmt: skip
    reports.close()


def test_what_is_not_durable_is_never_waited_for_in_vain(journal: Journal) -> None:
    journal.durable.clear()
    reports = ProgressReports(journal.endpoint(), LIFE)
    reports.report("out", Progress(1, 1, 2))
    wait_for(lambda: bool(journal.recorded))
    threading.Timer(0.01, reports.close).start()
    with pytest.raises(StoppedError):
        reports.wait()


def test_a_journal_out_of_reach_is_tried_again(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_reports, "RETRY_SECONDS", 0.01)
    act, failures = journal.port.actions["progress"], iter([ConnectionError("cut off"), None])

    def sometimes(*arguments: object) -> bytes:
        if (error := next(failures, None)) is not None:
            raise error
        return act(*arguments)  # type: ignore[arg-type]

    journal.port.actions["progress"] = sometimes
    reports = ProgressReports(journal.endpoint(), LIFE)
    reports.report("out", Progress(1, 1, 2))
    reports.wait()
    assert journal.recorded == [("out", Progress(1, 1, 2))]
    reports.close()


@pytest.mark.parametrize("right", [Right.READ, Right.WRITE, Right.CONTROL])
def test_clients_may_not_report(journal: Journal, right: Right) -> None:
    token = journal.authority.issue(Grant(right, "out"))
    with (
        FlightClient(journal.port.endpoint(token)) as client,
        pytest.raises(AuthenticationError, match="right to channel"),
    ):
        client.report_progress("out", LIFE, Progress(0, 0, 0))
    assert not journal.recorded


def test_a_sink_of_another_life_is_refused(journal: Journal) -> None:
    with (
        FlightClient(journal.endpoint()) as client,
        pytest.raises(StaleStreamError, match="incarnation 2 has been replaced by 3"),
    ):
        client.report_progress("out", LIFE - 1, Progress(0, 0, 0))
    assert not journal.recorded


def test_whoever_waits_in_a_worker_that_was_replaced_learns_that(journal: Journal) -> None:
    reports = ProgressReports(journal.endpoint(), LIFE - 1)
    reports.report("out", Progress(1, 1, 2))
    with pytest.raises(StoppedError):
        reports.wait()
    assert not journal.recorded
    reports.close()


def test_nonsense_is_refused(journal: Journal) -> None:
    with FlightClient(journal.endpoint()) as client:
        for nonsense in ("", "1.5", "--1", "9" * 30, "x"):
            with pytest.raises(InputError):
                client.report_progress("out", LIFE, (nonsense, 0, 0))  # type: ignore[arg-type]
    assert not journal.recorded
