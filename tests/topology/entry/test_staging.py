"""Rows of writers that may be retried: only the winning attempt counts, once, whoever repeats what."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from topology import InputError, StoppedError
from topology.entry.staging import Staging

LONG = 20.0


class Recorder:
    """Stands for the topology behind the staging area: keeps what is delivered, and can be made to wait or refuse."""

    def __init__(self) -> None:
        self.delivered: list[tuple[str, list[int | None]]] = []
        self.completed: list[str] = []
        self.claimed: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.stopped = False
        self.refusal: InputError | None = None
        self.staging = Staging("R", self.check, self.claim, self.deliver, self.completed.append)

    def check(self, rows: pa.RecordBatch, source: str, attempt: str) -> None:
        if self.refusal:
            raise self.refusal

    def claim(self, source: str) -> None:
        if self.refusal:
            raise self.refusal
        self.claimed.append(source)

    def deliver(self, source: str, rows: pa.RecordBatch) -> int | None:
        assert self.gate.wait(LONG)
        if self.stopped:
            raise StoppedError("stopped")
        times = rows.column("ts").to_pylist()
        self.delivered.append((source, times))
        return max((time for time in times if time is not None), default=None)

    def wait(self) -> None:
        drained = threading.Event()
        self.staging.when_drained(drained.set)
        assert drained.wait(LONG)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.gate.set()
    made.staging.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "staged R"]


def rows(*times: int | None) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, pa.int64())})


def test_staged_rows_are_invisible_until_they_are_committed(recorder: Recorder) -> None:
    staging = recorder.staging
    staging.stage("p", "1", rows(1, 2))
    staging.stage("p", "1", rows(3))
    assert staging.rows("p", "1") == staging.staged_rows == 3
    assert recorder.delivered == []
    staging.commit("p", "1", 3)
    recorder.wait()
    assert recorder.delivered == [("p", [1, 2]), ("p", [3])]
    assert recorder.completed == recorder.claimed == ["p"]
    assert staging.staged_rows == 0


def test_only_the_winning_attempt_counts(recorder: Recorder) -> None:
    staging = recorder.staging
    staging.stage("p", "first try", rows(1))
    staging.stage("p", "second try", rows(1, 2))
    staging.commit("p", "second try", 2)
    recorder.wait()
    assert recorder.delivered == [("p", [1, 2])]
    assert staging.rows("p", "first try") == 0


def test_a_repeated_commit_changes_nothing(recorder: Recorder) -> None:
    staging = recorder.staging
    staging.stage("p", "1", rows(1))
    for _ in range(3):
        staging.commit("p", "1", 1)
    recorder.wait()
    staging.commit("p", "1", 1)
    recorder.wait()
    assert recorder.delivered == [("p", [1])]
    assert recorder.completed == ["p"]


def test_a_contradicting_commit_is_an_error(recorder: Recorder) -> None:
    staging = recorder.staging
    staging.stage("p", "1", rows(1))
    staging.commit("p", "1", 1)
    with pytest.raises(InputError, match="attempt '2' cannot be committed, attempt '1' has been"):
        staging.commit("p", "2", 1)
    recorder.wait()
    assert recorder.delivered == [("p", [1])]


@pytest.mark.parametrize("said", [0, 1, 3])
def test_a_commit_with_another_number_of_rows_is_refused_and_can_be_corrected(recorder: Recorder, said: int) -> None:
    staging = recorder.staging
    staging.stage("p", "1", rows(1, 2))
    with pytest.raises(InputError, match=f"is said to have {said} rows, but 2 have arrived"):
        staging.commit("p", "1", said)
    assert staging.rows("p", "1") == 2
    staging.commit("p", "1", 2)
    recorder.wait()
    assert recorder.delivered == [("p", [1, 2])]


def test_rows_of_a_straggler_are_dropped_after_the_commit(recorder: Recorder) -> None:
    staging = recorder.staging
    staging.stage("p", "1", rows(1))
    staging.commit("p", "1", 1)
    recorder.refusal = InputError("must not be asked")
    staging.stage("p", "2", rows(1))
    staging.stage("p", "1", rows(1))
    recorder.wait()
    assert staging.staged_rows == 0
    assert recorder.delivered == [("p", [1])]


def test_a_source_without_rows_is_completed_too(recorder: Recorder) -> None:
    recorder.staging.commit("empty", "1", 0)
    recorder.wait()
    assert recorder.delivered == []
    assert recorder.claimed == recorder.completed == ["empty"]


def test_refused_rows_are_not_kept(recorder: Recorder) -> None:
    staging = recorder.staging
    staging.stage("p", "1", rows(1))
    recorder.refusal = InputError("no")
    with pytest.raises(InputError):
        staging.stage("p", "1", rows(0))
    with pytest.raises(InputError):
        staging.commit("p", "1", 1)
    recorder.refusal = None
    staging.commit("p", "1", 1)
    recorder.wait()
    assert recorder.delivered == [("p", [1])]


def test_the_source_that_lags_behind_in_time_goes_first(recorder: Recorder) -> None:
    staging = recorder.staging
    recorder.gate.clear()
    times_of: dict[str, list[int | None]] = {"a": [0, 10, 20], "b": [5, 6, 7], "c": [4, 11, None]}
    for source, times in times_of.items():
        for time in times:
            staging.stage(source, "1", rows(time))
        staging.commit(source, "1", 3)
    recorder.gate.set()
    recorder.wait()
    nobody_knows_where_they_stand = [("a", 0), ("b", 5), ("c", 4)]
    the_furthest_behind = [("a", 10), ("c", 11), ("b", 6), ("b", 7), ("a", 20), ("c", None)]
    assert [(source, times[0]) for source, times in recorder.delivered] == (
        nobody_knows_where_they_stand + the_furthest_behind
    )


def test_commit_returns_while_the_topology_takes_nothing(recorder: Recorder) -> None:
    recorder.gate.clear()
    for number in range(5):
        recorder.staging.stage(f"p{number}", "1", rows(number))
        recorder.staging.commit(f"p{number}", "1", 1)
    assert recorder.delivered == []
    recorder.gate.set()
    recorder.wait()
    assert sorted(recorder.completed) == [f"p{number}" for number in range(5)]


def test_drained_means_delivered(recorder: Recorder) -> None:
    recorder.gate.clear()
    recorder.staging.stage("p", "1", rows(1))
    recorder.staging.commit("p", "1", 1)
    drained = threading.Event()
    recorder.staging.when_drained(drained.set)
    assert not drained.wait(0.02)
    recorder.gate.set()
    assert drained.wait(LONG)
    assert recorder.completed == ["p"]


def test_closing_ends_the_delivery(recorder: Recorder) -> None:
    recorder.gate.clear()
    recorder.staging.stage("p", "1", rows(1))
    recorder.staging.commit("p", "1", 1)
    recorder.stopped = True
    recorder.gate.set()
    recorder.staging.close()
    assert recorder.completed == []
    with pytest.raises(StoppedError):
        recorder.staging.stage("q", "1", rows(1))


def test_many_writers_at_once(recorder: Recorder) -> None:
    def write(source: str) -> None:
        for attempt in ("1", "2"):
            for time in range(20):
                recorder.staging.stage(source, attempt, rows(time))
        recorder.staging.commit(source, "2", 20)

    writers = [threading.Thread(target=write, args=(f"p{number}",)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(LONG)
    recorder.wait()
    for number in range(8):
        assert [times for source, times in recorder.delivered if source == f"p{number}"] == [[t] for t in range(20)]
