"""Fixtures for pytest: write `pytest_plugins = ["interlace.testing.fixtures"]` into conftest.py.

simulate:      makes a `Simulation` of a topology, which ends with the test; `simulate(topology, seed=7)`.
schedule_seed: a number for `run` and `simulate`, 0 by default; `pytest --interlace-seeds 20` runs each test that uses
               it with the seeds 0 to 19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from interlace.testing.simulation import Simulation


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--interlace-seeds", type=int, default=1, help="run tests that use `schedule_seed` with so many seeds"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test that asks for a seed all of them."""
    if "schedule_seed" in metafunc.fixturenames and not any(
        mark.name == "parametrize" and "schedule_seed" in str(mark.args[0])
        for mark in metafunc.definition.iter_markers()
    ):
        metafunc.parametrize("schedule_seed", range(metafunc.config.getoption("--interlace-seeds")))


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulation]]:
    """Make simulations that end with the test."""
    with ExitStack() as ends:

        def make(topology: Any, seed: int = 0) -> Simulation:
            return ends.enter_context(Simulation(topology, seed))

        yield make
