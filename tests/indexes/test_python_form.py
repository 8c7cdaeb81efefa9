"""Kernels give the same results in Python form as compiled: every index keeps its contract, however it is run."""

import importlib
import pkgutil
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexes
import operators
from indexes.kernels.compiled import Kernel
from tests.indexes.contract import STEPS, check_against_linear_scan
from tests.indexes.every_index import NAMES, tiny_index
from tests.indexes.generated import seeds, without_deadline
from tests.indexes.kernels.python_kernels import python_kernels

every_index = pytest.mark.parametrize("name", NAMES)
courses = given(seeds, st.sampled_from([1, 1, 2, 3, 4]), st.lists(st.sampled_from(STEPS), min_size=8, max_size=20))


@every_index
@settings(without_deadline, max_examples=3)
@courses
def test_every_index_agrees_with_a_linear_scan_in_python_form(
    name: str, seed: int, dimensions: int, steps: list[str]
) -> None:
    with python_kernels():
        check_against_linear_scan(tiny_index(name, np.random.default_rng(seed)), seed, dimensions, steps)


@pytest.mark.slow
@every_index
@settings(without_deadline, max_examples=200)
@courses
def test_many_courses_of_events_agree_with_a_linear_scan_in_python_form(
    name: str, seed: int, dimensions: int, steps: list[str]
) -> None:
    with python_kernels():
        check_against_linear_scan(tiny_index(name, np.random.default_rng(seed)), seed, dimensions, steps)


def every_kernel() -> Iterator[Kernel]:
    for package in (indexes, operators):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            found = vars(importlib.import_module(module.name)).values()
            yield from (value for value in found if isinstance(value, Kernel) and value.__module__ == module.name)


def test_only_kernels_with_a_reason_must_be_compiled() -> None:
    """Those of trees that several threads fill use atomic operations; one compares all pairs of rows."""
    compiled = {f"{kernel.__module__}.{kernel.py_func.__name__}" for kernel in every_kernel() if kernel.python is None}
    assert compiled == {
        "indexes.scans.nested_loop_scan.scan_blocks",
        *(f"indexes.trees.atomics.{name}" for name in ("acquire", "release")),
        *(f"indexes.trees.partitions.{name}" for name in ("_grant", "_insert", "_visit")),
    }
