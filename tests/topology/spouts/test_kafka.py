"""Kafka as source and store, against the mock cluster that librdkafka brings along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from topology import (
    InputError,
    KafkaSource,
    KafkaStore,
    LocalRuntime,
    Topology,
    TopologyBuilder,
    deliver,
    from_source,
    pump,
)

kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """The address of a broker in this process, which ends with its client."""
    quiet = {"log_level": 0}
    cluster = kafka.Producer({"test.mock.num.brokers": 1, **quiet})
    brokers = cluster.list_topics(timeout=60).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del cluster


QUIET = (("log_level", 0),)


def produce(servers: str, topic: str, values: dict[int, list[int]]) -> None:
    producer = kafka.Producer({"bootstrap.servers": servers, **dict(QUIET)})
    for partition, numbers in values.items():
        for number in numbers:
            producer.produce(topic, value=json.dumps({"x": number}).encode(), partition=partition)
    assert producer.flush(60) == 0


def create(servers: str, topic: str) -> None:
    """The mock makes a topic when a producer asks for it."""
    kafka.Producer({"bootstrap.servers": servers, **dict(QUIET)}).list_topics(topic, timeout=60)


def records(servers: str, topic: str) -> list[Any]:
    source = KafkaSource(servers, topic, ends=True, settings=QUIET)
    return [row for batch in source.read(f"{topic}/0", 0) for row in batch]


def passing(name: str) -> Topology:
    builder = TopologyBuilder(name)
    builder.input("in")
    builder.sink().global_grouping("in")
    return builder.build()


def test_a_topic_is_a_spout_whose_tasks_share_its_partitions(servers: str) -> None:
    produce(servers, "numbers", {0: [1, 2], 1: [3], 2: [4, 5, 6]})
    builder = TopologyBuilder()
    builder.spout("numbers", from_source(KafkaSource(servers, "numbers", ends=True, settings=QUIET)), parallelism=2)
    builder.sink().global_grouping("numbers")
    with LocalRuntime().launch(builder.build()) as running:
        found = [x for rows in running.results(timeout=120) for x in rows["x"].to_pylist()]
    assert sorted(found) == [1, 2, 3, 4, 5, 6]


def test_records_enter_once_and_results_leave_once_across_failures(servers: str, tmp_path: Path) -> None:
    produce(servers, "in", {0: list(range(50)), 1: list(range(100, 150))})
    create(servers, "out")
    source = KafkaSource(servers, "in", ends=True, settings=QUIET)

    class Stumbling(KafkaStore):
        """Fails in the middle of a batch, after some of it is written."""

        def store(self, first: int, rows: pa.RecordBatch) -> None:
            super().store(first, rows.slice(0, 3))
            raise InputError("the store has failed")

    with LocalRuntime(state=tmp_path).launch(passing("kafka")) as running:
        assert pump(source, running, "in") == 100
        with pytest.raises(InputError, match="failed"):
            deliver(running, Stumbling(servers, "out", settings=dict(QUIET)))
    produce(servers, "in", {0: [50]})
    with LocalRuntime(state=tmp_path).launch(passing("kafka")) as running:
        store = KafkaStore(servers, "out", settings=dict(QUIET))
        assert store.next_number() == 3
        assert deliver(running, store, timeout=5) == 100
    written = [row["x"] for row in records(servers, "out")]
    assert sorted(written) == [*range(50), *range(100, 150)]


def test_an_offset_is_that_of_kafka(servers: str) -> None:
    produce(servers, "offsets", {0: [0, 1, 2, 3, 4]})
    source = KafkaSource(servers, "offsets", start=2, ends=True, settings=QUIET)
    assert [row["x"] for batch in source.read("offsets/0", 1) for row in batch] == [3, 4]


def test_gaps_and_strangers_are_refused(servers: str) -> None:
    source = KafkaSource(servers, "gaps", settings=QUIET)
    with pytest.raises(InputError, match="record 7 is followed by 8: the topic is compacted"):
        source._check_gaps(0, 6, [6, 8])
    with pytest.raises(InputError, match="create it first"):
        source.partitions()
    create(servers, "gaps")
    with pytest.raises(InputError, match="has no partition 99"):
        next(source.read("gaps/99", 0))
    produce(servers, "strange", {0: [1]})
    with pytest.raises(InputError, match="has no number of a result"):
        KafkaStore(servers, "strange", settings=dict(QUIET)).next_number()
