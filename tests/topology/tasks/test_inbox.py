"""Bounded queues: a full one makes only its own sender wait."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tests.topology.waiting import LONG, SHORT
from topology import Barrier, Batch, End, Punctuation, StoppedError, Watermark
from topology.graph.messages import CONTROL_BYTES, Message
from topology.tasks.inbox import Inbox


def batch(number: int, size: int = 10) -> Batch:
    return Batch("default", pa.record_batch({"a": [0] * size}), first=number)


BATCH_BYTES = batch(0).nbytes


def in_thread(action: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(action())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def drain(inbox: Inbox) -> list[tuple[int, int]]:
    taken = []
    while (found := inbox.poll()) is not None:
        index, message = found
        assert isinstance(message, Batch)
        taken.append((index, message.first))
    return taken


def test_messages_of_one_input_come_out_in_order() -> None:
    inbox = Inbox(1)
    sent: list[Message] = [batch(0), Watermark(3), batch(1), Punctuation(1), Barrier(1), End()]
    for message in sent:
        assert inbox.put(0, message)
    assert [inbox.poll() for _ in sent] == [(0, message) for message in sent]
    assert inbox.poll() is None


def test_inputs_are_served_in_turn() -> None:
    inbox = Inbox(3)
    for number in range(3):
        inbox.put(0, batch(number))
    inbox.put(1, batch(10))
    inbox.put(2, batch(20))
    assert drain(inbox) == [(0, 0), (1, 10), (2, 20), (0, 1), (0, 2)]


def test_bytes_are_counted_in_and_out() -> None:
    inbox = Inbox(2)
    inbox.put(0, batch(0))
    inbox.put(1, End())
    assert inbox.nbytes == BATCH_BYTES + CONTROL_BYTES
    inbox.poll()
    inbox.poll()
    assert inbox.nbytes == 0


def test_a_full_queue_refuses_after_the_timeout_and_keeps_what_it_has() -> None:
    inbox = Inbox(1, capacity=2 * BATCH_BYTES)
    assert inbox.put(0, batch(0))
    assert inbox.put(0, batch(1))
    assert not inbox.put(0, batch(2), timeout=SHORT)
    assert drain(inbox) == [(0, 0), (0, 1)]


def test_a_waiting_sender_goes_on_when_there_is_room() -> None:
    inbox = Inbox(1, capacity=BATCH_BYTES)
    inbox.put(0, batch(0))
    sender, outcome = in_thread(lambda: inbox.put(0, batch(1)))
    sender.join(SHORT)
    assert sender.is_alive()
    assert inbox.poll() == (0, batch(0))
    sender.join(LONG)
    assert outcome == [True]
    assert inbox.poll() == (0, batch(1))


def test_a_full_queue_does_not_hold_up_other_inputs() -> None:
    inbox = Inbox(2, capacity=BATCH_BYTES)
    inbox.put(0, batch(0))
    assert not inbox.put(0, batch(1), timeout=SHORT)
    assert inbox.put(1, batch(10), timeout=0)


def test_a_batch_larger_than_the_bound_is_let_in_alone() -> None:
    inbox = Inbox(1, capacity=10)
    assert inbox.put(0, batch(0, size=1000))
    assert not inbox.put(0, batch(1, size=1000), timeout=SHORT)


@pytest.mark.parametrize("message", [Watermark(1), Punctuation(1), Barrier(1), End()], ids=repr)
def test_control_messages_never_wait(message: Watermark | Punctuation | Barrier | End) -> None:
    inbox = Inbox(1, capacity=1)
    inbox.put(0, batch(0))
    assert inbox.put(0, message, timeout=0)


def test_a_whole_step_that_waits_leaves_no_room_until_it_is_taken() -> None:
    inbox = Inbox(2)
    told: list[int] = []
    inbox.on_room = told.append
    inbox.push(0, batch(0))
    assert inbox.has_room(0)  # a step that is not complete waits for its other messages
    inbox.push(0, Punctuation(9))
    inbox.push(0, batch(1))
    assert (inbox.has_room(0), inbox.has_room(1)) == (False, True)
    inbox.poll()
    assert (inbox.has_room(0), told) == (False, [])
    inbox.poll()
    assert (inbox.has_room(0), told) == (True, [0])
    inbox.poll()
    assert told == [0]


def test_a_blocked_input_is_left_alone_until_it_is_free() -> None:
    inbox = Inbox(2)
    inbox.put(0, batch(0))
    inbox.put(1, batch(10))
    inbox.put(1, batch(11))
    blocked = {0}
    assert inbox.poll(blocked.__contains__) == (1, batch(10))
    assert inbox.poll(blocked.__contains__) == (1, batch(11))
    assert inbox.poll(blocked.__contains__) is None
    assert inbox.take(blocked.__contains__, timeout=SHORT) is None
    blocked.clear()
    assert inbox.poll(blocked.__contains__) == (0, batch(0))


def test_take_waits_for_a_message() -> None:
    inbox = Inbox(1)
    taker, outcome = in_thread(inbox.take)
    taker.join(SHORT)
    assert taker.is_alive()
    inbox.put(0, End())
    taker.join(LONG)
    assert outcome == [(0, End())]


def test_take_gives_up_after_the_timeout() -> None:
    assert Inbox(1).take(timeout=SHORT) is None


def test_closing_wakes_everyone_and_drops_what_waits() -> None:
    inbox = Inbox(2, capacity=1)
    inbox.put(0, batch(0))
    sender, sent = in_thread(lambda: inbox.put(0, batch(1)))
    only_input_one = Inbox(1)
    taker, taken = in_thread(only_input_one.take)
    sender.join(SHORT)
    inbox.close()
    only_input_one.close()
    sender.join(LONG)
    taker.join(LONG)
    assert isinstance(sent[0], StoppedError)
    assert taken == [None]
    assert inbox.closed
    assert inbox.nbytes == 0
    assert inbox.poll() is None
    assert inbox.take() is None
    with pytest.raises(StoppedError):
        inbox.put(0, End())
    inbox.close()


def test_many_senders_lose_nothing_and_stay_within_bounds() -> None:
    senders, each, capacity = 8, 200, 3 * BATCH_BYTES
    inbox = Inbox(senders, capacity)

    def send(index: int) -> None:
        for number in range(each):
            assert inbox.put(index, batch(number), timeout=LONG)
        inbox.put(index, End())

    taken: dict[int, list[int]] = {index: [] for index in range(senders)}
    with ThreadPoolExecutor(senders) as pool:
        running = [pool.submit(send, index) for index in range(senders)]
        ended = 0
        while ended < senders:
            assert inbox.nbytes <= senders * (capacity + CONTROL_BYTES)
            found = inbox.take(timeout=LONG)
            assert found is not None
            index, message = found
            if isinstance(message, Batch):
                taken[index].append(message.first)
            else:
                ended += 1
        for sender in running:
            sender.result(LONG)
    assert taken == {index: list(range(each)) for index in range(senders)}
