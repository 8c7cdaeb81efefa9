"""The machines of the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.namespaces import Network, refusal

MakeNetwork = Callable[[int], Network]


@pytest.fixture(scope="module")
def machines() -> Iterator[MakeNetwork]:
    """Make a network of so many machines; it ends with the module's tests."""
    if reason := refusal():
        pytest.skip(reason)
    networks: list[Network] = []

    def make(count: int) -> Network:
        networks.append(Network(count))
        return networks[-1]

    yield make
    for network in networks:
        network.close()
