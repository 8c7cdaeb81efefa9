"""Micro-batches of queries: each enters once and whole, in an order that partitions and attempts do not touch."""

from __future__ import annotations

import random
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa
import pytest

from tests.topology.entry.input_queue import Queue, announced
from tests.topology.waiting import LONG
from topology import (
    Batch,
    End,
    Input,
    InputError,
    QuotaError,
    Quotas,
    SchemaError,
    SourceEndedError,
    StoppedError,
    Watermark,
)
from topology.entry.feeds import Delay, MicroBatchPart
from topology.entry.ingest import Ingest


class FedQueue(Queue):
    """An entry `R` whose rows may be out of order."""

    def __init__(self, **described: object) -> None:
        super().__init__()
        self.ingest = Ingest()
        self.ingest.add("R", Input(**{"event_time": "ts", "disordered": True, **described}), self.put)  # type: ignore[arg-type]

    def stage(self, number: int, attempt: str, rows: pa.RecordBatch, query: str = "q") -> int:
        self.ingest.stage_micro_batch("R", MicroBatchPart("trips", query, number, attempt), rows)
        return rows.num_rows

    def commit(self, number: int, attempts: dict[str, int], query: str = "q") -> None:
        self.ingest.commit_micro_batch("R", "trips", query, number, attempts)
        self.ingest.next_offset("R", "trips")  # waits until the rows have entered

    def write(self, number: int, **parts: pa.RecordBatch) -> None:
        self.commit(number, {attempt: self.stage(number, attempt, rows) for attempt, rows in parts.items()})

    @property
    def entered(self) -> list[tuple[int, int, str]]:
        """Offset, time and content of each row."""
        found: list[tuple[int, int, str]] = []
        for message in self.messages:
            if isinstance(message, Batch):
                assert message.source == "trips"
                rows = message.rows.to_pydict()
                found += zip(range(message.first, message.end), rows["ts"], rows["x"], strict=True)
        return found

    @property
    def staged(self) -> int:
        return self.ingest._streams["R"].staging.nbytes


def rows(*pairs: tuple[int, str]) -> pa.RecordBatch:
    times, texts = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.record_batch({"ts": pa.array(times, pa.int64()), "x": pa.array(texts, pa.string())})


@pytest.fixture
def queue() -> FedQueue:
    queue = FedQueue()
    assert queue.ingest.open_feed("R", "trips", "q") == -1
    return queue


def test_partitions_are_merged_by_time_then_content_and_numbered(queue: FedQueue) -> None:
    queue.write(0, a=rows((5, "b"), (1, "z")), b=rows((5, "a"), (2, "y")), c=rows())
    queue.write(1, a=rows((3, "late but within the delay")))
    assert queue.messages[0] == announced("trips")
    assert queue.entered == [
        (0, 1, "z"), (1, 2, "y"), (2, 5, "a"), (3, 5, "b"), (4, 3, "late but within the delay")
    ]  # fmt: skip
    assert queue.ingest.next_offset("R", "trips") == 5
    assert queue.staged == 0


def test_nothing_enters_before_the_commit_and_losing_attempts_never_do(queue: FedQueue) -> None:
    queue.stage(0, "a", rows((1, "first try")))
    queue.stage(0, "a2", rows((1, "second try")))
    assert queue.entered == []
    queue.commit(0, {"a2": 1})
    assert queue.entered == [(0, 1, "second try")]
    assert queue.staged == 0


def test_the_next_micro_batch_is_staged_while_one_enters_and_its_commit_waits(queue: FedQueue) -> None:
    queue.room.clear()
    ingest = queue.ingest
    ingest.commit_micro_batch("R", "trips", "q", 0, {"a": queue.stage(0, "a", rows((1, "a"), (2, "b")))})
    staged = queue.stage(1, "a", rows((3, "c")))
    with ThreadPoolExecutor(3) as threads:
        waiting: list[Future[Any]] = [threads.submit(ingest.commit_micro_batch, "R", "trips", "q", 1, {"a": staged})]
        waiting.append(threads.submit(ingest.next_offset, "R", "trips"))
        assert not wait(waiting, 0.2).done
        assert queue.entered == []
        queue.room.set()
        waiting[0].result(LONG)
        assert waiting[1].result(LONG) in (2, 3)
        threads.submit(ingest.finish, "R", "trips").result(LONG)
    assert queue.entered == [(0, 1, "a"), (1, 2, "b"), (2, 3, "c")]
    assert queue.messages[-1] == End("default", "trips")


def test_an_entry_that_is_closed_lets_the_rows_of_a_commit_go(queue: FedQueue) -> None:
    queue.room.clear()
    queue.ingest.commit_micro_batch("R", "trips", "q", 0, {"a": queue.stage(0, "a", rows((1, "a")))})
    queue.closed = True
    queue.room.set()
    queue.ingest.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "feed trips"]
    with pytest.raises(StoppedError):
        queue.ingest.commit_micro_batch("R", "trips", "q", 1, {})


def test_a_committed_micro_batch_is_skipped_whole(queue: FedQueue) -> None:
    queue.write(3, a=rows((1, "a"), (2, "b")))
    assert queue.ingest.open_feed("R", "trips", "q") == 3
    queue.write(3, other=rows((7, "other rows of the same number")))
    queue.write(2, other=rows((8, "an older one")))
    queue.commit(3, {"never staged": 12})
    assert queue.entered == [(0, 1, "a"), (1, 2, "b")]
    assert queue.staged == 0


def test_a_commit_that_does_not_fit_what_was_staged_changes_nothing(queue: FedQueue) -> None:
    queue.stage(0, "a", rows((1, "a")))
    with pytest.raises(InputError, match="micro-batch 0 cannot be committed with 2 rows of attempt 'a', because 1"):
        queue.commit(0, {"a": 2})
    with pytest.raises(InputError, match="with 1 rows of attempt 'b', because 0 have"):
        queue.commit(0, {"a": 1, "b": 1})
    assert queue.entered == []
    queue.commit(0, {"a": 1})
    assert queue.entered == [(0, 1, "a")]


def test_another_query_is_refused_until_it_takes_over_and_then_the_first_is(queue: FedQueue) -> None:
    queue.write(0, a=rows((1, "a")))
    queue.stage(1, "a", rows((2, "never committed")))
    with pytest.raises(InputError, match=r"belongs to query q, and this is q2: .* was deleted.*takeOver=true"):
        queue.ingest.open_feed("R", "trips", "q2")
    with pytest.raises(InputError, match="query q has taken over from q2"):
        queue.stage(0, "a", rows((9, "x")), query="q2")
    assert queue.ingest.open_feed("R", "trips", "q2", take_over=True) == -1
    assert queue.staged == 0
    with pytest.raises(InputError, match="query q2 has taken over from q"):
        queue.commit(1, {"a": 1})
    with pytest.raises(InputError, match="query q2 has taken over from q, which cannot come back"):
        queue.ingest.open_feed("R", "trips", "q", take_over=True)
    queue.commit(0, {"a": queue.stage(0, "a", rows((3, "b")), query="q2")}, query="q2")
    assert queue.entered == [(0, 1, "a"), (1, 3, "b")]


def test_a_stream_without_a_delay_takes_no_feed() -> None:
    queue = FedQueue(disordered=False)
    with pytest.raises(InputError, match=r"stream 'R', feed 'trips': it declares no delay.*out_of_order="):
        queue.ingest.open_feed("R", "trips", "q")
    assert queue.messages == []
    unordered = FedQueue(disordered=False, event_time=None)  # rows without a time are never late
    unordered.ingest.open_feed("R", "trips", "q")
    unordered.write(0, a=rows((9, "b")), b=rows((3, "c"), (9, "a")))
    assert [x for _, _, x in unordered.entered] == ["c", "a", "b"]


def test_what_does_not_fit_is_refused(queue: FedQueue) -> None:
    queue.write(0, a=rows((1, "a")))
    with pytest.raises(SchemaError, match="'x' is missing"):
        queue.stage(1, "a", pa.record_batch({"ts": [1]}))
    with pytest.raises(InputError, match="feed 'nobody': no query has opened it"):
        queue.ingest.stage_micro_batch("R", MicroBatchPart("nobody", "q", 0, "a"), rows((1, "a")))
    with pytest.raises(QuotaError, match="has 1 attempts staged"):
        queue.stage(1, "a", rows((1, "a")))
        part = MicroBatchPart("trips", "q", 1, "b")
        queue.ingest.stage_micro_batch("R", part, rows((1, "a")), Quotas(attempts=1))
    views = FedQueue()
    views.ingest.open_feed("R", "trips", "q")
    with pytest.raises(SchemaError, match="column 'x' is string_view, which cannot be put in order"):
        views.stage(0, "a", rows((1, "a")).cast(pa.schema([("ts", pa.int64()), ("x", pa.string_view())])))
    queue.ingest.finish("R", "trips")
    with pytest.raises(SourceEndedError, match="source 'trips' has ended"):
        queue.commit(1, {"a": 1})
    with pytest.raises(SourceEndedError):
        queue.ingest.open_feed("R", "trips", "q")


def test_a_source_that_sends_itself_is_no_feed() -> None:
    queue = FedQueue()
    queue.ingest.send("R", "trips", rows((1, "a")))
    with pytest.raises(InputError, match="a source of that name has sent rows itself"):
        queue.ingest.open_feed("R", "trips", "q")


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_tried_again_the_same_rows_enter(seed: int) -> None:
    """Micro-batches are divided at random; attempts fail, are repeated, and so are commits and whole micro-batches."""
    choose = random.Random(seed)
    content = [[(choose.randrange(20), choose.choice("abc")) for _ in range(choose.randrange(8))] for _ in range(6)]
    queue = FedQueue()
    for number, pairs in enumerate(content):
        for _ in range(choose.randrange(1, 4)):  # the query dies and does it again
            queue.ingest.open_feed("R", "trips", "q")
            mixed = choose.sample(pairs, len(pairs))
            parts: list[list[tuple[int, str]]] = [[] for _ in range(choose.randrange(1, 4))]
            for pair in mixed:
                choose.choice(parts).append(pair)
            attempts = {}
            for part in parts:
                for _ in range(choose.randrange(1, 3)):
                    attempt = f"{choose.random()}"
                    cut = choose.randrange(len(part) + 1)
                    queue.stage(number, attempt, rows(*part[:cut]))
                    queue.stage(number, attempt, rows(*part[cut:]))
                attempts[attempt] = len(part)  # the last one counts
            for _ in range(choose.randrange(3)):
                queue.commit(number, attempts)
        queue.commit(number, attempts)
    expected = [pair for pairs in content for pair in sorted(pairs)]
    assert [(ts, x) for _, ts, x in queue.entered] == expected
    assert [offset for offset, _, _ in queue.entered] == list(range(len(expected)))
    assert queue.staged == 0


def test_a_query_may_declare_the_delay_itself_and_keeps_it() -> None:
    queue = FedQueue(disordered=False, takes_bounds=True)
    with pytest.raises(InputError, match="declares no delay"):
        queue.ingest.open_feed("R", "trips", "q", delay=Delay("another column", 7))
    queue.ingest.open_feed("R", "trips", "q", delay=Delay("ts", 7))
    assert queue.messages == [Watermark(None, "default", "trips", 7)]
    queue.write(0, a=rows((9, "a")), b=rows((4, "b")))
    queue.write(1, a=rows((3, "c")))
    assert queue.entered == [(0, 4, "b"), (1, 9, "a"), (2, 3, "c")]
    with pytest.raises(InputError, match="opened with a delay of 7, and this query has a delay of 8"):
        queue.ingest.open_feed("R", "trips", "q", delay=Delay("ts", 8))
    with pytest.raises(InputError, match="declares no delay"):
        queue.ingest.open_feed("R", "trips", "q")
    ordered = FedQueue(disordered=False)
    with pytest.raises(InputError, match="declares no delay"):  # nobody downstream would know of it
        ordered.ingest.open_feed("R", "trips", "q", delay=Delay("ts", 7))
