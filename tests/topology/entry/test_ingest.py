"""Rows from outside: refused rows leave no trace, accepted ones arrive in order, and only `send` waits for room."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.topology.entry.input_queue import Queue, announced, rows
from tests.topology.waiting import LONG, wait_for
from topology import (
    Batch,
    End,
    Input,
    InputError,
    Message,
    OutOfOrderError,
    SchemaError,
    SourceEndedError,
    StoppedError,
)
from topology.entry.ingest import Ingest
from topology.tasks.activity import Activity


def test_rows_arrive_numbered_and_the_end_comes_last() -> None:
    queue = Queue()
    queue.ingest.open("R", "a")
    queue.ingest.open("R", "a")
    queue.ingest.send("R", "a", rows(1, 2))
    queue.ingest.send("R", "b", rows(1))
    queue.ingest.send("R", "a", rows(2))
    queue.ingest.finish("R", "b")
    queue.finish()
    assert queue.summary() == [
        announced("a"),
        ("a", 0, [1, 2]),
        ("b", 0, [1]),
        ("a", 2, [2]),
        End("default", "b"),
        End("default", "a"),
        End(),
    ]
    assert queue.ingest.sources("R") == {"a": 3, "b": 1}


def test_finishing_twice_ends_once() -> None:
    queue = Queue()
    queue.finish()
    queue.ingest.finish("R")
    assert queue.messages == [End()]


REFUSED: list[tuple[str, Callable[[Ingest], object], type[InputError]]] = [
    ("wrong schema", lambda ingest: ingest.send("R", "a", pa.record_batch({"t": [1]})), SchemaError),
    ("backwards in the batch", lambda ingest: ingest.send("R", "a", rows(7, 6)), OutOfOrderError),
    ("backwards after the last", lambda ingest: ingest.send("R", "a", rows(4)), OutOfOrderError),
    ("new source, backwards", lambda ingest: ingest.send("R", "new", rows(2, 1)), OutOfOrderError),
    ("ended source", lambda ingest: ingest.send("R", "ended", rows(9)), SourceEndedError),
    ("source without a name", lambda ingest: ingest.open("R", ""), InputError),
    ("end of an unknown source", lambda ingest: ingest.finish("R", "unknown"), InputError),
    ("other schema pinned", lambda ingest: ingest.pin("R", pa.schema([("t", pa.int64())])), SchemaError),
    ("staged, wrong schema", lambda ingest: ingest.stage("R", "p", "1", pa.record_batch({"t": [1]})), SchemaError),
    ("staged, backwards", lambda ingest: ingest.stage("R", "p", "1", rows(2, 1)), OutOfOrderError),
    ("commit of a source that sent", lambda ingest: ingest.commit("R", "a", "1", 0), InputError),
    ("commit of rows that never came", lambda ingest: ingest.commit("R", "p", "1", 4), InputError),
]


@pytest.mark.parametrize(("call", "kind"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_refused_leaves_no_trace(call: Callable[[Ingest], object], kind: type[InputError]) -> None:
    def run(*calls: Callable[[Ingest], object]) -> list[object]:
        queue = Queue()
        queue.ingest.send("R", "a", rows(1, 5))
        queue.ingest.open("R", "ended")
        queue.ingest.finish("R", "ended")
        for hostile in calls:
            with pytest.raises(kind):
                hostile(queue.ingest)
        queue.ingest.send("R", "a", rows(5, 6))
        queue.ingest.stage("R", "p", "1", rows(0))
        queue.ingest.commit("R", "p", "1", 1)
        queue.finish()
        return queue.summary()

    assert run(call, call) == run()


@pytest.mark.parametrize("call", [lambda ingest: ingest.send("R", "a", rows(1)), lambda ingest: ingest.open("R", "a")])
def test_nothing_is_taken_after_the_end(call: Callable[[Ingest], object]) -> None:
    queue = Queue()
    queue.finish()
    with pytest.raises(SourceEndedError, match="'R' has been finished"):
        call(queue.ingest)
    assert queue.messages == [End()]


def test_an_interrupted_send_can_be_repeated() -> None:
    queue = Queue()

    def interrupted(message: Message) -> None:
        raise KeyboardInterrupt

    target = queue.ingest._streams["R"]
    put, target.put = target.put, interrupted
    with pytest.raises(KeyboardInterrupt):
        queue.ingest.send("R", "a", rows(1, 2))
    target.put = put
    queue.ingest.send("R", "a", rows(1, 2))
    assert queue.summary() == [("a", 0, [1, 2])]


def test_only_send_waits_while_the_topology_takes_nothing() -> None:
    queue = Queue()

    def everything_else() -> None:
        queue.ingest.open("R", "b")
        queue.ingest.pin("R", rows().schema)
        queue.ingest.stage("R", "p", "1", rows(1))
        queue.ingest.commit("R", "p", "1", 1)
        queue.ingest.sources("R")

    queue.room.clear()
    with ThreadPoolExecutor(2) as pool:
        sending = pool.submit(queue.ingest.send, "R", "a", rows(1))
        wait_for(queue.ingest._streams["R"].order.locked)
        pool.submit(everything_else).result(LONG)
        assert not sending.done()
        queue.room.set()
        sending.result(LONG)
    queue.finish()


def test_many_senders_of_one_stream_keep_their_own_order() -> None:
    queue = Queue()

    def send(source: str) -> None:
        for number in range(100):
            queue.ingest.send("R", source, rows(number))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(send, "abcdef"))
    for source in "abcdef":
        firsts = [
            message.first for message in queue.messages if isinstance(message, Batch) and message.source == source
        ]
        assert firsts == list(range(100))


def test_a_send_that_races_the_end_is_taken_before_it_or_refused() -> None:
    for _ in range(20):
        queue = Queue()
        with ThreadPoolExecutor(2) as pool:
            sending = pool.submit(queue.ingest.send, "R", "a", rows(1))
            pool.submit(queue.ingest.finish, "R").result(LONG)
        if sending.exception() is None:
            assert queue.summary() == [("a", 0, [1]), End("default", "a"), End()]
        else:
            assert isinstance(sending.exception(), SourceEndedError)
            assert queue.messages == [End()]


def test_calls_that_wait_for_what_was_sent_before_learn_that_the_topology_has_failed() -> None:
    """A task may fail at rows that are repeated, before the entry has gone on."""
    activity, replay = Activity(), SimpleNamespace(finished=threading.Event())
    entry = Ingest(opened=SimpleNamespace(journal=None, replay=replay), activity=activity)  # type: ignore[arg-type]

    def closed(message: Message) -> None:
        raise StoppedError("the topology has been stopped")

    entry.add("in", Input(), closed)
    entry.resume()
    activity.close()
    with pytest.raises(StoppedError):
        entry.finish("in")
    entry.close()
