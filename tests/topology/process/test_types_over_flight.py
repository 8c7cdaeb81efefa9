"""Rows of every Arrow type go from a client through two processes' edges to a reader, unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.operators.every_type import Celsius, every_type
from tests.topology.process.processes import processes
from topology import FlightClient, TopologyBuilder
from topology.flight.server import TopologyServer
from topology.security.tokens import Authority


@pytest.fixture(autouse=True)
def known_extension() -> Iterator[None]:
    """Arrow gives columns of an extension type their type back where it is registered."""
    pa.register_extension_type(Celsius())
    yield
    pa.unregister_extension_type(Celsius().extension_name)


def test_every_type_arrives_as_it_was_sent() -> None:
    builder = TopologyBuilder("types")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    topology = builder.build()
    sent = [every_type(seed) for seed in range(4)]
    sent += [sent[0].slice(3, 4), sent[1].slice(0, 0)]
    with processes(topology, [("in", 0)], [("results", 0)]) as ((here, there), edges):
        assert len(edges) == 1
        authority = Authority()
        inputs = TopologyServer(topology, here.group.ingest, {}, authority=authority)
        outputs = TopologyServer(topology, there.group.ingest, there.group.results, authority=authority)
        with FlightClient(inputs.endpoint("in", control=True)) as writer:
            for batch in sent:
                writer.send("in", "a", batch)
            writer.finish("in")
        with FlightClient(outputs.endpoint("results")) as reader:
            read = pa.Table.from_batches(reader.results("results"))
        read.validate(full=True)
        assert read.schema.equals(sent[0].schema)
        assert read.to_pylist() == pa.Table.from_batches(sent).to_pylist()
        inputs.close()
        outputs.close()
