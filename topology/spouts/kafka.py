"""Topics of Kafka as sources of rows and as stores of results. Needs confluent-kafka: `pip install interlace[kafka]`.

The offsets of Kafka are the offsets of the input, counted from `start`. So the log of the topology says what has been
read, and no consumer group is needed: `pump` goes on behind it, and each record counts once. In a topic that is written
to by `KafkaStore`, each record carries the number of its result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from topology.delivery.result_store import ResultStore
from topology.entry.frames import Rows
from topology.graph.errors import InputError, MissingPackageError
from topology.spouts.source import Source

SECONDS = 30.0
"""How long a broker may take to answer."""

RECORDS_TOGETHER = 10_000
NUMBER = "interlace-number"
"""The header with the number of a result."""

Decode: TypeAlias = Callable[[list[bytes]], Rows]
"""Makes rows of the values of records, one for each."""

Encode: TypeAlias = Callable[[pa.RecordBatch], Sequence[bytes]]
"""Makes the value of a record of each row."""

Settings: TypeAlias = Mapping[str, str | int | bool]


def json_rows(values: list[bytes]) -> Rows:
    """Read JSON objects, one in each record."""
    return [json.loads(value) for value in values]


def rows_json(rows: pa.RecordBatch) -> Sequence[bytes]:
    """Write each row as a JSON object; values that JSON has not become text."""
    return [json.dumps(row, default=str).encode() for row in rows.to_pylist()]


@dataclass(frozen=True)
class KafkaSource(Source):
    """A topic; its partitions are called `topic/0`, `topic/1`, ...

    servers:  the brokers, such as "localhost:9092".
    decode:   makes rows of values; JSON objects by default.
    start:    the offset in Kafka of each partition's first row. If records before it are removed, nothing changes; if
              records from it on are removed before they were read, reading them is refused.
    ends:     stop at the records that are there when reading begins, instead of waiting for more.
    settings: further settings of librdkafka, such as those for security. They are part of the description.

    Records must follow each other without gaps, as they do in topics that are neither compacted nor written in
    transactions.
    """

    servers: str
    topic: str
    decode: Decode = json_rows
    start: int = 0
    ends: bool = False
    settings: tuple[tuple[str, str | int | bool], ...] = ()

    def partitions(self) -> Sequence[str]:
        consumer = self._consumer()
        try:
            return [f"{self.topic}/{number}" for number in _partitions(consumer, self.servers, self.topic)]
        finally:
            consumer.close()

    def read(self, partition: str, offset: int) -> Iterator[Rows]:
        kafka = _kafka()
        consumer = self._consumer()
        try:
            number, following = int(partition.rpartition("/")[2]), self.start + offset
            place = kafka.TopicPartition(self.topic, number, following)
            low, high = _ends(consumer, self.servers, place)
            if following < low:
                raise InputError(
                    f"Kafka topic '{self.topic}', partition {number}: record {following} is wanted, but those before "
                    f"{low} have been removed; give start={low} for a new run, and keep records longer"
                )
            consumer.assign([place])
            while not (self.ends and following >= high):
                records = [record for record in consumer.consume(RECORDS_TOGETHER, timeout=0.5) if self._holds(record)]
                if records:
                    self._check_gaps(number, following, [record.offset() for record in records])
                    yield self.decode([record.value() for record in records])
                    following += len(records)
        finally:
            consumer.close()

    def _holds(self, record: Any) -> bool:
        if record.error() is not None:
            raise InputError(f"Kafka topic '{self.topic}' at {self.servers}: {record.error().str()}")
        return True

    def _check_gaps(self, number: int, following: int, offsets: list[int]) -> None:
        for expected, offset in enumerate(offsets, following):
            if offset != expected:
                raise InputError(
                    f"Kafka topic '{self.topic}', partition {number}: record {expected} is followed by {offset}: the "
                    f"topic is compacted or written in transactions, and offsets with gaps cannot be numbered"
                )

    def _consumer(self) -> Any:
        own = {"bootstrap.servers": self.servers, "group.id": "interlace", "enable.auto.commit": False}
        return _kafka().Consumer({**dict(self.settings), **own, "auto.offset.reset": "error"})


class KafkaStore(ResultStore):
    """Writes results to one partition of a topic, each as a record, in their order and each once.

    One writer at a time, and nobody else writes to this partition: the number in its last record says how far it is.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        partition: int = 0,
        encode: Encode = rows_json,
        settings: Settings | None = None,
    ) -> None:
        self._servers = servers
        self._topic = topic
        self._partition = partition
        self._encode = encode
        self._settings = dict(settings or {})
        own: dict[str, Any] = {"bootstrap.servers": servers, "enable.idempotence": True}
        self._producer = _kafka().Producer({**self._settings, **own})

    def next_number(self) -> int:
        kafka = _kafka()
        own: dict[str, Any] = {"bootstrap.servers": self._servers, "group.id": "interlace", "enable.auto.commit": False}
        consumer = kafka.Consumer({**self._settings, **own})
        try:
            low, high = _ends(consumer, self._servers, kafka.TopicPartition(self._topic, self._partition))
            if low == high:
                return 0
            consumer.assign([kafka.TopicPartition(self._topic, self._partition, high - 1)])
            record = consumer.poll(SECONDS)
            if record is None or record.error() is not None:
                raise InputError(
                    f"Kafka topic '{self._topic}': its last record cannot be read: {record and record.error()}"
                )
            numbers = [value for name, value in record.headers() or [] if name == NUMBER]
            if not numbers:
                raise InputError(
                    f"Kafka topic '{self._topic}', partition {self._partition}: its last record has no number of a "
                    f"result; give results a partition of their own"
                )
            return int(numbers[-1]) + 1
        finally:
            consumer.close()

    def store(self, first: int, rows: pa.RecordBatch) -> None:
        failures: list[str] = []

        def delivered(error: Any, record: Any) -> None:
            if error is not None:
                failures.append(error.str())

        for number, value in enumerate(self._encode(rows), first):
            headers = {NUMBER: str(number)}
            while True:
                try:
                    self._producer.produce(
                        self._topic, value=value, partition=self._partition, headers=headers, on_delivery=delivered
                    )
                    break
                except BufferError:  # its queue is full
                    self._producer.poll(1.0)
        left = self._producer.flush(SECONDS)
        if failures or left:
            reason = failures[0] if failures else f"{left} records were not taken within {SECONDS:g} s"
            raise InputError(f"Kafka topic '{self._topic}' at {self._servers}: {reason}")


def _partitions(consumer: Any, servers: str, topic: str) -> list[int]:
    """The numbers of a topic's partitions."""
    try:
        found = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
    except _kafka().KafkaException as error:
        raise InputError(f"Kafka at {servers} does not answer: {error.args[0].str()}") from None
    if found.error is not None:
        raise InputError(f"Kafka topic '{topic}' at {servers}: {found.error.str()}: create it first")
    return sorted(found.partitions)


def _ends(consumer: Any, servers: str, place: Any) -> tuple[int, int]:
    """The offsets of the first record that is kept and behind the last one."""
    if place.partition not in (known := _partitions(consumer, servers, place.topic)):
        raise InputError(f"Kafka topic '{place.topic}' at {servers} has no partition {place.partition}, only {known}")
    try:
        low, high = consumer.get_watermark_offsets(place, timeout=SECONDS)
    except _kafka().KafkaException as error:
        raise InputError(f"Kafka topic '{place.topic}' at {servers}: {error.args[0].str()}") from None
    return low, high


def _kafka() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        raise MissingPackageError("Kafka needs the package confluent-kafka: pip install interlace[kafka]") from None
    return confluent_kafka
