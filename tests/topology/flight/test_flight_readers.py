"""Readers over Flight: one that leaves, is replaced or is killed loses nothing, and rows come in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from tests.topology.waiting import LONG, wait_for
from topology import (
    AcknowledgedError,
    FlightClient,
    InputError,
    LocalRuntime,
    RunningTopology,
    SinkHasReaderError,
    StoppedError,
    TakenOverError,
    TopologyBuilder,
)
from topology.flight.call_options import call_options
from topology.flight.operations import action, ticket

ROOT = Path(__file__).parents[3]
ROWS = 500

READER = """
import sys
from topology import Endpoint, FlightClient
uri, token, kind = sys.argv[1:]
with FlightClient(Endpoint.from_uri(uri, token)) as client:
    if kind == "numbered":
        for turn, (first, rows) in enumerate(client.results("results", numbered=True)):
            print(first, *rows.column("n").to_pylist(), flush=True)
            client.acknowledge(first + rows.num_rows * (1 + turn % 2) // 2 - 1, "results")  # half or all of it
    else:
        for rows in client.results("results"):
            print("?", *rows.column("n").to_pylist(), flush=True)
print("end", flush=True)
"""


@contextmanager
def counting(batches: int, edge_bytes: int = 40_000) -> Iterator[RunningTopology]:
    """A topology whose results are the numbers from 0 on, sent as fast as they are read."""
    builder = TopologyBuilder("counting")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    with LocalRuntime(edge_bytes=edge_bytes).launch(builder.build()) as running:

        def send() -> None:
            for first in range(0, batches * ROWS, ROWS):
                running.send("in", pa.record_batch({"n": range(first, first + ROWS)}))
            running.finish()

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        yield running
        sender.join(LONG)
        assert not sender.is_alive()


def values(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [value for rows in batches for value in rows.column("n").to_pylist()]


def test_readers_that_leave_lose_nothing() -> None:
    with counting(300) as running, FlightClient(running.endpoint("results")) as client:
        dealt_with: list[int] = []
        for _ in range(6):
            reader = client.results("results")
            for _ in range(3):  # small batches travel together: these are about a tenth of all
                in_hand = next(reader)
                dealt_with += in_hand.column("n").to_pylist()
            del dealt_with[len(dealt_with) - in_hand.num_rows :]  # not acknowledged: it comes again
            reader.close()
        rest = values(client.results("results"))
        assert dealt_with + rest == list(range(300 * ROWS))
        assert values(client.results("results")) == [], "the end acknowledges everything"


@pytest.mark.parametrize("kind", ["numbered", "plain"])
def test_readers_that_are_killed_lose_nothing(kind: str) -> None:
    batches = 700
    with counting(batches) as running:
        endpoint = running.endpoint("results")
        seen = 0  # all below have been printed by some reader
        for kills_after in (1, 10, 2, 25, 7, None):
            command = [sys.executable, "-c", READER, endpoint.uri, str(endpoint.token), kind]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            following: int | None = None
            for turn, line in enumerate(process.stdout):
                if line == "end\n" or not line.endswith("\n"):
                    break
                first, *found = line.split()
                numbers = list(map(int, found))
                if kind == "numbered":
                    assert numbers[0] == int(first), "the numbers of a topology that counts are its rows"
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
                assert following in (None, numbers[0]), "within one reader nothing is left out and nothing repeated"
                assert numbers[0] <= seen, "rows are lost between two readers"
                following = numbers[-1] + 1
                seen = max(seen, following)
                if turn == kills_after:
                    os.kill(process.pid, signal.SIGKILL)  # what it has printed before is read on
            process.stdout.close()
            assert process.wait(LONG) == (-signal.SIGKILL if kills_after is not None else 0)
        assert seen == batches * ROWS
        if kind == "plain":
            assert values(running.results()) == []


def test_a_second_reader_is_refused_or_takes_over() -> None:
    with counting(50) as running:
        endpoint = running.endpoint("results")
        with FlightClient(endpoint) as first, FlightClient(endpoint) as second:
            old = first.results("results")
            taken = values(iter([next(old), next(old)]))  # the first of these is acknowledged
            with pytest.raises(SinkHasReaderError, match=r"'results' has a reader already.*take_over=True"):
                second.results("results")
            with pytest.raises(SinkHasReaderError):
                running.results()
            new = second.results("results", take_over=True, numbered=True)
            number, rows = next(new)
            assert number <= taken[-1], "a batch that was not acknowledged comes again"
            assert rows.column("n").to_pylist()[0] == number
            with pytest.raises(TakenOverError, match="another reader has taken over sink 'results'"):
                values(old)
            assert list(old) == []
            assert values(running.results(take_over=True))[-1] == 50 * ROWS - 1
            with pytest.raises(TakenOverError):
                list(new)


def test_numbers_acknowledgements_and_after() -> None:
    with counting(4, edge_bytes=1_000_000) as running, FlightClient(running.endpoint("results")) as client:
        wait_for(lambda: running.metrics().tasks[-1].rows_in == 4 * ROWS)
        assert next(client.results("results", numbered=True))[0] == 0
        assert sum(rows.num_rows for _, rows in client.results("results", numbered=True)) == 4 * ROWS
        assert values(client.results("results", after=ROWS + 9)) == list(range(ROWS + 10, 4 * ROWS))
        client.acknowledge(ROWS + 4, "results")
        client.acknowledge(3, "results")
        assert next(client.results("results", numbered=True))[0] == ROWS + 5
        assert values(client.results("results", after=ROWS + 4)) == list(range(ROWS + 5, 4 * ROWS))
        for after in (-1, 0, ROWS + 3):
            with pytest.raises(AcknowledgedError, match=f"the first that is kept is {ROWS + 5}: read with after="):
                client.results("results", after=after)
        with pytest.raises(InputError, match="cannot be acknowledged, because it has not been given"):
            client.acknowledge(4 * ROWS, "results")
        client.acknowledge(4 * ROWS - 1, "results")
        assert list(client.results("results", after=4 * ROWS - 1)) == []


def test_rows_that_were_there_come_however_short_the_timeout() -> None:
    with counting(2) as running, FlightClient(running.endpoint("results")) as client:
        wait_for(lambda: running.metrics().tasks[-1].rows_in == 2 * ROWS)
        assert values(client.results("results", timeout=0.0))[:ROWS] == list(range(ROWS))


def test_a_get_acknowledges_by_an_action() -> None:
    with counting(2) as running:
        endpoint = running.endpoint("results")
        wait_for(lambda: running.metrics().tasks[-1].rows_in == 2 * ROWS)
        client, options = flight.connect(endpoint.location), call_options(endpoint.token)
        for _ in range(2):
            read = client.do_get(ticket("results", "results"), options).read_all()
            assert read.column("n").to_pylist() == list(range(2 * ROWS))
        list(client.do_action(action("acknowledge", "results", str(ROWS - 1)), options))
        read = client.do_get(ticket("results", "results"), options).read_all()
        assert read.column("n").to_pylist() == list(range(ROWS, 2 * ROWS))
        for path in (
            ("results",),
            ("results", "results", "x"),
            ("results", "results", "1", "now"),
            ("results", "", ""),
        ):
            with pytest.raises(flight.FlightError):
                client.do_get(ticket(*path), options).read_all()
        client.close()
        assert values(running.results())[0] == ROWS


def test_stop_ends_a_reader_that_waits_with_an_error() -> None:
    builder = TopologyBuilder("quiet")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    running = LocalRuntime().launch(builder.build())
    with FlightClient(running.endpoint("results")) as client:
        reader = client.results("results")
        threading.Timer(0.1, running.stop).start()
        with pytest.raises(StoppedError):
            next(reader)
