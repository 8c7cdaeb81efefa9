"""The machines of the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.namespaces import Machine, Network, refusal

MakeMachines = Callable[[int], list[Machine]]


@pytest.fixture(scope="module")
def machines() -> Iterator[MakeMachines]:
    """Make machines on a network of their own; they end with the module's tests."""
    if reason := refusal():
        pytest.skip(reason)
    networks: list[Network] = []

    def make(count: int) -> list[Machine]:
        networks.append(Network(count))
        return networks[-1].machines

    yield make
    for network in networks:
        network.close()
