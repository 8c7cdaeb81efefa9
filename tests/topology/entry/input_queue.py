"""An `Ingest` with one stream and a queue that records what enters."""

import threading

import pyarrow as pa

from tests.topology.waiting import LONG
from topology import Batch, End, Input, Message, StoppedError, Watermark
from topology.entry.ingest import Ingest


class Queue:
    """Stands in for the queue of an input `R`; batches wait while it is full, control messages do not."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.room = threading.Event()
        self.room.set()
        self.closed = False
        self.ended = threading.Event()
        self.ingest = Ingest()
        self.ingest.add("R", Input(event_time="ts"), self.put)

    def put(self, message: Message) -> None:
        if isinstance(message, Batch):
            assert self.room.wait(LONG)
        if self.closed:
            raise StoppedError("stopped")
        self.messages.append(message)
        if message == End():
            self.ended.set()

    def finish(self) -> list[Message]:
        self.ingest.finish("R")
        assert self.ended.wait(LONG)
        return self.messages

    def summary(self) -> list[object]:
        """The messages in short: a batch as its source, first offset and times."""
        return [
            (message.source, message.first, message.rows.column("ts").to_pylist())
            if isinstance(message, Batch)
            else message
            for message in self.messages
        ]


def rows(*times: int) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, pa.int64())})


def announced(source: str) -> Watermark:
    return Watermark(None, "default", source)
