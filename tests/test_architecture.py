"""The rules of the house that a machine can check: imports point one way and stop at a package's interface."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "indexes": {"indexes"},
    "topology": {"topology"},
    "operators": {"operators", "indexes", "topology"},
    "spark_bridge": {"spark_bridge", "topology"},
    "interlace": {"interlace", "indexes", "topology", "operators", "spark_bridge"},
}
"""What each package may import of ours."""

OUTSIDE = ("examples", "benchmarks")
"""Code that is no package of ours; it uses the packages through their interfaces."""

ENGINES = ("spo_join", "pan_join", "split_join", "handshake_join", "scale_join", "index_join")
ROOMS = {
    "topology": ("graph", "tasks", "entry", "handle", "flight", "local", "on_ray"),
    "indexes": ("kernels", "one_key", "trees", "pan", "permutations", "scans", "grids"),
    "operators": ("query", "sql", "values", "bounds", "intake", "routing", "results", "engines"),
    "operators/engines": ("shared", *ENGINES),
}
"""The rooms of each package: a room imports those before it. Files beside the rooms may import all of them."""

EVERY_ROOM = [(package, room) for package, rooms in ROOMS.items() for room in rooms]

APART = {
    ("topology", "on_ray"): {"local"},
    **{("operators/engines", engine): set(ENGINES) for engine in ENGINES},
    ("operators/engines", "handshake_join"): set(ENGINES) - {"split_join"},
}
"""Rooms that do not import each other, although one comes first."""

MOST_FILES = 17
"""A room with more files wants rooms of its own."""

FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
OTHERS = sorted(path for folder in OUTSIDE for path in (ROOT / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_imports_point_one_way(path: Path) -> None:
    ours = {name.split(".")[0] for name in imports(path)} & {*PACKAGES, *OUTSIDE, "tests"}
    assert ours <= PACKAGES[package_of(path)]


@pytest.mark.parametrize("path", [*FILES, *OTHERS], ids=named)
def test_a_package_is_imported_through_its_interface_only(path: Path) -> None:
    foreign = {name for name in imports(path) if name.split(".")[0] in set(PACKAGES) - {package_of(path)}}
    assert {name for name in foreign if "." in name} == set()


@pytest.mark.parametrize("package", ROOMS)
def test_every_folder_is_a_room(package: str) -> None:
    folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert folders == set(ROOMS[package])


@pytest.mark.parametrize(("package", "room"), EVERY_ROOM)
def test_rooms_import_earlier_ones_only(package: str, room: str) -> None:
    rooms = ROOMS[package]
    allowed = set(rooms[: rooms.index(room)]) - APART.get((package, room), set()) | {room}
    prefix = package.replace("/", ".") + "."
    for path in (ROOT / package / room).rglob("*.py"):
        for name in imports(path):
            if name.startswith(prefix):
                assert name.removeprefix(prefix).split(".")[0] in allowed, f"{named(path)} imports {name}"


@pytest.mark.parametrize(("package", "room"), EVERY_ROOM)
def test_rooms_stay_small(package: str, room: str) -> None:
    assert len(list((ROOT / package / room).glob("*.py"))) - 1 <= MOST_FILES


@pytest.mark.parametrize("path", FILES, ids=named)
def test_ray_and_spark_stay_in_their_rooms(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)}
    assert "ray" not in roots or path.parent.name == "on_ray"
    assert "pyspark" not in roots or package_of(path) == "spark_bridge"
    assert not any(name.startswith("ray.data") for name in imports(path))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_nothing_is_unpickled(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {("pickle", "loads"), ("pickle", "load")}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "hash", "hash() differs between processes: use stable_hash"


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("package", [*PACKAGES, *(f"{package}/{room}" for package, room in EVERY_ROOM)])
def test_every_room_says_what_flows_in_and_out_and_what_it_imports(package: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    assert all(word in said for word in ("In", "Out", "mport")), said


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists(package: str) -> None:
    interface = importlib.import_module(package)
    for name in interface.__all__:
        getattr(interface, name)
