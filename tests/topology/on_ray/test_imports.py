"""What the processes of a topology import before they start: each module costs a launch its time, once per process."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "needless"),
    [
        ("controller", {"numpy", "pyarrow", "grpc", "cryptography", "operators", "indexes"}),
        ("worker", {"pyarrow.flight", "grpc", "cryptography", "pandas", "numba", "operators", "indexes"}),
    ],
)
def test_a_process_imports_only_what_it_needs(module: str, needless: set[str]) -> None:
    program = f"import sys, topology.on_ray.{module}; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {*loaded} & needless
