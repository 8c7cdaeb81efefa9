"""Rows of writers that may be retried: only the committed attempt enters, once, however often a call is repeated."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tests.topology.entry.input_queue import Queue, announced, rows
from tests.topology.waiting import LONG, wait_for
from topology import Batch, End, InputError, InputGuard, OutOfOrderError, SourceEndedError, StoppedError, Watermark


def entered(queue: Queue) -> list[tuple[str, list[int]]]:
    """The batches that have entered when the stream has ended: source and times."""
    queue.finish()
    return [
        (message.source, message.rows.column("ts").to_pylist())
        for message in queue.messages
        if isinstance(message, Batch)
    ]


def committing_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "staged R"]


def test_a_committed_source_is_announced_at_once_and_ends_after_its_rows() -> None:
    queue = Queue()
    queue.room.clear()
    queue.ingest.stage("R", "p", "1", rows(1, 2))
    queue.ingest.commit("R", "p", "1", 2)
    queue.ingest.commit("R", "empty", "1", 0)
    assert set(queue.messages) >= {announced("p"), announced("empty")}
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(queue.ingest.finish, "R", "p")  # waits if the rows wait for room already
        queue.ingest.finish("R")
        assert not queue.ended.is_set()
        queue.room.set()
        ending.result(LONG)
    assert queue.ended.wait(LONG)
    summary = queue.summary()
    assert summary[-1] == End()
    assert summary.index(("p", 0, [1, 2])) < summary.index(End("default", "p"))
    assert summary.count(End("default", "p")) == summary.count(End("default", "empty")) == 1


def test_staged_rows_without_a_commit_never_show() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "1", rows(1))
    queue.finish()
    assert queue.messages == [End()]
    with pytest.raises(SourceEndedError):
        queue.ingest.commit("R", "p", "1", 1)
    queue.ingest.close()


def test_stopping_releases_a_waiting_committer() -> None:
    queue = Queue()
    queue.room.clear()
    queue.ingest.stage("R", "p", "1", rows(1))
    queue.ingest.commit("R", "p", "1", 1)
    queue.ingest.finish("R")
    queue.closed = True
    queue.room.set()
    queue.ingest.close()
    assert committing_threads() == []
    assert not queue.ended.is_set()


def test_staged_rows_enter_in_order_after_the_commit() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "1", rows(1, 2))
    queue.ingest.stage("R", "p", "1", rows(3))
    assert queue.messages == []
    queue.ingest.commit("R", "p", "1", 3)
    queue.finish()
    assert queue.summary() == [announced("p"), ("p", 0, [1, 2]), ("p", 2, [3]), End("default", "p"), End()]
    assert queue.ingest.sources("R") == {"p": 3}


def test_staged_rows_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue()
    checked: list[int] = []
    check: Callable[..., object] = InputGuard.check

    def counted(guard: InputGuard, batch: pa.RecordBatch, *others: object) -> object:
        checked.append(batch.num_rows)
        return check(guard, batch, *others)

    monkeypatch.setattr(InputGuard, "check", counted)
    queue.ingest.stage("R", "p", "1", rows(1, 2))
    queue.ingest.stage("R", "p", "1", rows(3))
    queue.ingest.commit("R", "p", "1", 3)
    assert entered(queue) == [("p", [1, 2]), ("p", [3])]
    assert checked == [2, 1]


def test_only_the_winning_attempt_enters() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "first try", rows(1))
    queue.ingest.stage("R", "p", "second try", rows(1, 2))
    queue.ingest.commit("R", "p", "second try", 2)
    assert entered(queue) == [("p", [1, 2])]


def test_a_repeated_commit_changes_nothing() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "1", rows(1))
    for _ in range(3):
        queue.ingest.commit("R", "p", "1", 1)
    queue.finish()
    queue.ingest.commit("R", "p", "1", 1)
    assert queue.summary() == [announced("p"), ("p", 0, [1]), End("default", "p"), End()]


def test_a_contradicting_commit_is_an_error() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "1", rows(1))
    queue.ingest.commit("R", "p", "1", 1)
    with pytest.raises(InputError, match="attempt '1' has been committed already"):
        queue.ingest.commit("R", "p", "2", 1)
    assert entered(queue) == [("p", [1])]


def test_a_commit_with_a_wrong_number_of_rows_can_be_corrected() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "1", rows(1, 2))
    with pytest.raises(InputError, match="2 have arrived"):
        queue.ingest.commit("R", "p", "1", 1)
    assert queue.messages == []
    queue.ingest.commit("R", "p", "1", 2)
    assert entered(queue) == [("p", [1, 2])]


def test_rows_of_a_straggler_are_dropped_after_the_commit() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "1", rows(1))
    queue.ingest.commit("R", "p", "1", 1)
    queue.ingest.stage("R", "p", "2", rows(1))
    queue.ingest.stage("R", "p", "1", rows(0))  # would go backwards: a straggler's rows are not even checked
    assert queue.ingest._streams["R"].staging._attempts == {}
    assert entered(queue) == [("p", [1])]
    queue.ingest.stage("R", "p", "2", rows(1))


def test_what_is_discarded_never_enters_and_nobody_waits_for_it() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "job.1", rows(1))
    queue.ingest.stage("R", "p", "job.2", rows(1))
    queue.ingest.stage("R", "q", "job.3", rows(2))
    queue.ingest.stage("R", "q", "other", rows(2, 3))
    queue.ingest.stage("R", "won", "job.4", rows(4))
    queue.ingest.commit("R", "won", "job.4", 1)
    for _ in range(2):
        queue.ingest.discard("R", "job.")
    queue.ingest.stage("R", "late", "job.5", rows(5))
    assert queue.ingest._streams["R"].staging._attempts == {}
    assert set(queue.ingest.sources("R")) == {"won", "p", "q"}
    with pytest.raises(InputError, match=r"'job\.nobody' has been committed already"):
        queue.ingest.commit("R", "p", "job.1", 1)
    queue.ingest.stage("R", "next", "task.1", rows(6))
    queue.ingest.commit("R", "next", "task.1", 1)
    assert sorted(entered(queue)) == [("next", [6]), ("won", [4])]
    assert all(End("default", source) in queue.messages for source in ("p", "q"))
    queue.ingest.discard("R", "job.")


def test_sources_behind_another_promise_what_it_has_reached() -> None:
    queue = Queue()
    queue.ingest.open("R", "p")
    queue.ingest.open("R", "q", behind="p")
    queue.ingest.stage("R", "p", "1", rows(1, 2))
    queue.ingest.stage("R", "p", "1", rows(5))
    queue.ingest.commit("R", "p", "1", 3)
    wait_for(lambda: End("default", "p") in queue.messages)
    queue.ingest.open("R", "r", behind="q")
    queue.ingest.commit("R", "q", "1", 0)
    wait_for(lambda: End("default", "q") in queue.messages)
    queue.ingest.stage("R", "r", "1", rows(5, 7))
    queue.ingest.open("R", "s", behind="r")
    queue.ingest.commit("R", "r", "1", 2)
    wait_for(lambda: End("default", "r") in queue.messages)
    assert queue.summary() == [
        announced("p"), announced("q"), ("p", 0, [1, 2]), Watermark(2, "default", "q"),
        ("p", 2, [5]), Watermark(5, "default", "q"), End("default", "p"),
        Watermark(5, "default", "r"), End("default", "q"), Watermark(5, "default", "s"), ("r", 0, [5, 7]),
        Watermark(7, "default", "s"), End("default", "r"),
    ]  # fmt: skip
    assert not queue.ingest._streams["R"].followers._next


def test_refused_rows_are_not_kept() -> None:
    queue = Queue()
    queue.ingest.stage("R", "p", "1", rows(1))
    with pytest.raises(OutOfOrderError):
        queue.ingest.stage("R", "p", "1", rows(0))
    queue.ingest.commit("R", "p", "1", 1)
    assert entered(queue) == [("p", [1])]


def test_commit_returns_while_the_topology_takes_nothing() -> None:
    queue = Queue()
    queue.room.clear()
    for number in range(5):
        queue.ingest.stage("R", f"p{number}", "1", rows(number))
        queue.ingest.commit("R", f"p{number}", "1", 1)
    assert all(message in queue.messages for message in map(announced, ["p0", "p1", "p2", "p3", "p4"]))
    assert not any(isinstance(message, Batch) for message in queue.messages)
    queue.room.set()
    assert sorted(entered(queue)) == [(f"p{number}", [number]) for number in range(5)]


def test_a_later_commit_enters_after_the_earlier_ones_have_been_delivered() -> None:
    queue = Queue()
    for number in range(30):
        queue.ingest.stage("R", f"p{number:02}", "1", rows(number))
        queue.ingest.commit("R", f"p{number:02}", "1", 1)
        if number % 3 == 0:
            wait_for(lambda: queue.ingest._streams["R"].pump is None)
    assert entered(queue) == [(f"p{number:02}", [number]) for number in range(30)]
    assert queue.messages.count(End()) == 1


def test_nothing_is_staged_after_closing() -> None:
    queue = Queue()
    queue.room.clear()
    queue.ingest.stage("R", "p", "1", rows(1))
    queue.ingest.commit("R", "p", "1", 1)
    queue.closed = True
    queue.room.set()
    queue.ingest.close()
    assert committing_threads() == []
    assert queue.messages == [announced("p")]
    with pytest.raises(StoppedError):
        queue.ingest.stage("R", "q", "1", rows(1))


def test_many_writers_at_once() -> None:
    queue = Queue()

    def write(source: str) -> None:
        for attempt in ("1", "2"):
            for time in range(20):
                queue.ingest.stage("R", source, attempt, rows(time))
        queue.ingest.commit("R", source, "2", 20)

    writers = [threading.Thread(target=write, args=(f"p{number}",)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(LONG)
    delivered = entered(queue)
    for number in range(8):
        assert [times for source, times in delivered if source == f"p{number}"] == [[t] for t in range(20)]
