"""The house rules that a machine can check: imports point one way, and some doors stay shut."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {
    "indexes": {"indexes"},
    "topology": {"topology"},
    "operators": {"operators", "indexes", "topology"},
    "spark_bridge": {"spark_bridge", "topology"},
}
ROOMS = ("query", "values", "intake", "routing", "results", "engines")
"""The packages in operators, each of which imports those before it only; the front door, beside them, imports all."""

FILES = sorted(path for package in ALLOWED for path in (ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = {name.split(".")[0] for name in imports(path)} & {*ALLOWED, "examples", "benchmarks", "tests"}
    assert ours <= ALLOWED[package]


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_operators_import_earlier_ones_only(room: str) -> None:
    allowed = ROOMS[: ROOMS.index(room) + 1]
    for path in (ROOT / "operators" / room).glob("*.py"):
        for name in imports(path):
            parts = name.split(".")
            assert parts[0] != "operators" or (len(parts) > 1 and parts[1] in allowed), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_ray_and_spark_stay_in_their_rooms(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)}
    assert "ray" not in roots or path.name.startswith("ray_")
    assert "pyspark" not in roots or path.relative_to(ROOT).parts[0] == "spark_bridge"
    assert not any(name.startswith("ray.data") for name in imports(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unpickled(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {("pickle", "loads"), ("pickle", "load")}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "hash", "hash() differs between processes: use topology.hashing"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
