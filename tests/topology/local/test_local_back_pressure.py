"""A slow reader slows the sender, and memory stays bounded."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from tests.topology.local.pipelines import pipeline, read, same, send_each
from tests.topology.waiting import LONG, SHORT, done_within, wait_for
from topology import LocalRuntime, MapBatches
from topology.process import task_group


def test_a_slow_reader_slows_the_sender_and_memory_stays_bounded() -> None:
    bound, count = 10_000, 2_000
    topology = pipeline(MapBatches(same))
    one = pa.record_batch({"n": np.zeros(100, dtype=np.int64)})
    with LocalRuntime(edge_bytes=bound).launch(topology) as running, ThreadPoolExecutor(1) as pool:

        def send() -> None:
            for _ in range(count):
                running.send("in", one)
            running.finish()

        sending = pool.submit(send)
        assert not done_within(sending.done, SHORT)
        received = 0
        for rows in running.results():
            received += rows.num_rows
            # A queue may hold one batch more than its bound, and a control message or two.
            assert all(task.waiting_bytes <= bound + 1_200 for task in running.metrics().tasks)
            taken = running.metrics().of("in")[0].rows_in
            # Four such queues and the batch in the hands of each of the three tasks lie between.
            assert taken - received <= 4 * (bound + 1_200) // 8 + 4 * 100
        sending.result(LONG)
    assert received == count * 100


def test_a_sender_that_waits_for_a_reader_gets_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_group, "UNREAD_WARNING_SECONDS", 0.01)
    with LocalRuntime(edge_bytes=1_000).launch(pipeline()) as running, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send_each, running, [1] * 200, finish=True)
        wait_for(lambda: "read results() in another thread" in caplog.text)
        assert read(running) == [2] * 200
        sending.result(LONG)
