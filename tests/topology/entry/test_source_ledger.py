"""The ledger of a stream: what is refused leaves no trace, and only one attempt at a source counts."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from topology import Input, InputError, OutOfOrderError, SchemaError, SourceEndedError
from topology.entry.source_ledger import SourceLedger


def rows(*times: int | None) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, pa.int64())})


def new_ledger(**settings: Any) -> SourceLedger:
    return SourceLedger("R", Input(**{"event_time": "ts"} | settings))


def take(ledger: SourceLedger, batch: pa.RecordBatch, source: str = "R-0") -> tuple[int, tuple[Any, Any] | None]:
    made = ledger.accept(source, batch)
    ledger.record(made)
    return made.first, made.times


def state(ledger: SourceLedger) -> str:
    return repr((ledger._guard.schema, ledger._sources, ledger._attempts, ledger._finished))


def test_rows_are_numbered_per_source_and_carry_their_time_bounds() -> None:
    ledger = new_ledger()
    assert take(ledger, rows(1, 1, 4)) == (0, (1, 4))
    assert take(ledger, rows(2), "R-1") == (0, (2, 2))
    assert take(ledger, rows(4, 9)) == (3, (4, 9))
    assert ledger.sources == {"R-0": 5, "R-1": 1}


def test_without_an_event_time_the_row_number_is_the_time() -> None:
    ledger = new_ledger(event_time=None)
    assert take(ledger, rows(9, 3, 1)) == (0, (0, 2))
    assert take(ledger, rows(0)) == (3, (3, 3))


def test_rows_that_have_no_time_do_not_move_time() -> None:
    ledger = new_ledger()
    assert take(ledger, rows(5, None, 6)) == (0, (5, 6))
    assert take(ledger, rows(None)) == (3, None)
    assert take(ledger, rows()) == (4, None)
    assert take(ledger, rows(6)) == (4, (6, 6))


def test_a_batch_counts_only_once_it_is_queued() -> None:
    ledger = new_ledger()
    interrupted = ledger.accept("R-0", rows(1, 2))
    again = ledger.accept("R-0", rows(1, 2))
    assert (interrupted.first, again.first) == (0, 0)
    assert ledger.sources == {}


def test_sources_keep_their_own_time() -> None:
    ledger = new_ledger()
    take(ledger, rows(100), "late")
    assert take(ledger, rows(1), "early") == (0, (1, 1))


@pytest.mark.parametrize(
    "other", [pa.record_batch({"t": [1]}), rows(4), rows(7, 6)], ids=["schema", "before", "within"]
)
def test_refused_rows_leave_no_trace(other: pa.RecordBatch) -> None:
    ledger = new_ledger()
    take(ledger, rows(1, 5))
    ledger.stage("p", "1", rows(5))
    before = state(ledger)
    calls: list[Callable[[], object]] = [lambda: ledger.accept("R-0", other), lambda: ledger.stage("p", "1", other)]
    for call in calls:
        with pytest.raises((SchemaError, OutOfOrderError)):
            call()
    assert state(ledger) == before
    assert take(ledger, rows(5)) == (2, (5, 5))


def test_time_that_goes_backwards_in_the_very_first_batch_pins_no_schema() -> None:
    ledger = new_ledger()
    before = state(ledger)
    with pytest.raises(OutOfOrderError):
        ledger.accept("R-0", rows(2, 1))
    assert state(ledger) == before


def test_an_ended_source_sends_no_more() -> None:
    ledger = new_ledger()
    take(ledger, rows(1))
    assert ledger.end("R-0")
    assert not ledger.end("R-0")
    with pytest.raises(SourceEndedError, match="source 'R-0' has ended"):
        ledger.accept("R-0", rows(2))
    assert ledger.sources == {"R-0": 1}


def test_ending_all_names_those_that_had_not_ended() -> None:
    ledger = new_ledger()
    for source in "abc":
        ledger.open(source)
    ledger.end("b")
    assert ledger.end_all() == ["a", "c"]


def test_ending_an_unknown_source_names_the_known() -> None:
    ledger = new_ledger()
    ledger.open("R-0")
    with pytest.raises(InputError, match="no source 'R-1'; its sources: 'R-0'"):
        ledger.end("R-1")


def test_announcing_a_source_twice_is_harmless() -> None:
    ledger = new_ledger()
    assert not ledger.is_known("R-0")
    assert ledger.open("R-0")
    assert not ledger.open("R-0")
    assert ledger.is_known("R-0")
    assert ledger.is_open("R-0")
    with pytest.raises(InputError, match="needs a name"):
        ledger.open("")


def test_attempts_are_checked_separately() -> None:
    ledger = new_ledger()
    ledger.stage("p", "1", rows(5))
    assert ledger.stage("p", "2", rows(1)) == (1, 1)
    before = state(ledger)
    with pytest.raises(OutOfOrderError, match=r"row 1 \(5 is followed by 4\)"):
        ledger.stage("p", "1", rows(4))
    assert state(ledger) == before
    ledger.stage("p", "2", rows(4))


def test_a_committed_source_belongs_to_its_attempt() -> None:
    ledger = new_ledger()
    times = ledger.stage("p", "1", rows(1))
    ledger.stage("p", "2", rows(1))
    ledger.stage("q", "1", rows(1))
    assert ledger.commit("p", "1", 1)
    assert ledger.is_committed("p")
    assert not ledger.is_open("p")
    assert list(ledger._attempts) == [("q", "1")]
    with pytest.raises(SourceEndedError):
        ledger.accept("p", rows(1))
    released = ledger.release("p", rows(1), times)
    ledger.record(released)
    assert (released.first, released.times, ledger.sources) == (0, (1, 1), {"p": 1})
    assert not ledger.end("p"), "a committed source ends with its last row"
    assert ledger.end_all() == ["p"]


def test_released_rows_are_numbered_as_they_were_staged() -> None:
    ledger = new_ledger(event_time=None)
    batches = [rows(9, 3), rows(), rows(1)]
    times = [ledger.stage("p", "1", batch) for batch in batches]
    assert ledger.commit("p", "1", 3)
    ledger.finish()
    numbers = []
    for batch, bounds in zip(batches, times, strict=True):
        made = ledger.release("p", batch, bounds)
        ledger.record(made)
        numbers.append((made.first, made.times))
    assert numbers == [(0, (0, 1)), (2, None), (2, (2, 2))]


def test_a_repeated_commit_is_not_new_and_a_contradicting_one_is_an_error() -> None:
    ledger = new_ledger()
    ledger.stage("p", "1", rows(1))
    assert ledger.commit("p", "1", 1)
    before = state(ledger)
    assert not ledger.commit("p", "1", 1)
    with pytest.raises(InputError, match="attempt '2' cannot be committed, because attempt '1' has been committed"):
        ledger.commit("p", "2", 1)
    assert state(ledger) == before


@pytest.mark.parametrize("claimed", [0, 1, 3])
def test_a_commit_with_another_number_of_rows_is_refused_and_can_be_corrected(claimed: int) -> None:
    ledger = new_ledger()
    ledger.stage("p", "1", rows(1, 2))
    before = state(ledger)
    with pytest.raises(InputError, match=f"with {claimed} rows, because 2 have arrived"):
        ledger.commit("p", "1", claimed)
    assert state(ledger) == before
    assert ledger.commit("p", "1", 2)


def test_an_announced_source_may_be_committed_but_not_one_that_sent_rows_or_ended() -> None:
    ledger = new_ledger()
    ledger.open("announced")
    assert ledger.commit("announced", "1", 0)
    take(ledger, rows(1), "sent")
    ledger.open("ended")
    ledger.end("ended")
    for source in ("sent", "ended"):
        with pytest.raises(InputError, match="use another source name"):
            ledger.commit(source, "1", 0)


def test_a_finished_stream_takes_nothing_more() -> None:
    ledger = new_ledger()
    assert ledger.finish()
    assert not ledger.finish()
    before = state(ledger)
    calls: list[Callable[[], object]] = [
        lambda: ledger.open("R-0"),
        lambda: ledger.accept("R-0", rows(1)),
        lambda: ledger.stage("R-0", "1", rows(1)),
        lambda: ledger.commit("R-0", "1", 0),
    ]
    for call in calls:
        with pytest.raises(SourceEndedError, match="stream 'R' has been finished"):
            call()
    assert state(ledger) == before
