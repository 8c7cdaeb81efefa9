"""The rules of the house that a machine can check, each a function from a source tree to the breaches it finds.

A breach is a sentence that names the file. `tests/test_architecture.py` applies every rule to the project, and breaks
each rule on purpose to see that it is noticed.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = {
    "indexes": {"indexes"},
    "topology": {"topology"},
    "operators": {"operators", "indexes", "topology"},
    "spark_bridge": {"spark_bridge", "topology"},
    "interlace": {"interlace", "operators", "indexes", "topology", "spark_bridge"},
}
"""Which of our packages each package may import."""

OUTSIDE = ("examples", "benchmarks")
"""Code outside the packages. It uses them through their interfaces."""

ENGINES = ("spo_join", "pan_join", "split_join", "handshake_join", "scale_join", "index_join")
ROOMS = {
    "topology": (
        *("graph", "durable", "placement", "tasks", "journal", "steps", "checks", "entry", "bolts", "parts"),
        *("handle", "delivery", "spouts", "security"),
        *("edges", "flight", "process", "local", "on_ray", "simulated"),
    ),
    "indexes": ("kernels", "one_key", "trees", "pan", "permutations", "scans", "grids"),
    "operators": (
        *("protocol", "functions", "query", "sql", "values"),
        *("bounds", "intake", "routing", "aggregates", "results", "as_of", "engines", "multiway"),
    ),
    "operators/engines": ("shared", *ENGINES),
    "interlace": ("files", "yaml_form", "foreground", "watching", "on_ray", "web", "command_line", "testing"),
}
"""The rooms of each package. A room imports only earlier ones; files beside the rooms may import all of them."""

APART = {
    ("topology", "on_ray"): {"local"},
    **{("operators/engines", engine): set(ENGINES) for engine in ENGINES},
}
"""Rooms that do not import each other, although one comes first."""

MAY_UNPICKLE = {"topology/on_ray/by_value.py", "indexes/kernels/machine_code.py"}
"""The task's own description, which the launching program hands to its actor through Ray; and machine code, which is
code in any case, from a directory that only the user can write to."""

MOST_FILES = 17
"""A room with more files needs rooms of its own."""

OPERATOR_TABLE = "operators/query/comparison_operators.py"
WHOLE_NUMBER_CHECKS = {"indexes/kernels/whole_numbers.py", "topology/graph/builder.py"}
"""One check for indexes and operators, one for the graph, which imports neither."""

RETIRED = re.compile(r"\b[Dd]oors?\b")
"""Words that meant several things: a door was a package's interface, a stream's entry and a Flight server."""

ABOUT_WORDS = {"house_rules.py", "test_architecture.py", "glossary.md"}

COMPARISONS = {"<", "<=", ">", ">=", "=", "!="}

Rule = Callable[[Path], Iterator[str]]
RULES: dict[str, Rule] = {}


def rule(function: Rule) -> Rule:
    """Register a rule under its name."""
    RULES[function.__name__] = function
    return function


@rule
def packages_import_one_way(root: Path) -> Iterator[str]:
    for path in package_files(root):
        for name in imports(path):
            package = name.split(".")[0]
            if package in {*PACKAGES, *OUTSIDE, "tests"} - PACKAGES[package_of(root, path)]:
                yield f"{shown(root, path)} imports {name}"


@rule
def code_outside_a_package_imports_its_interface_only(root: Path) -> Iterator[str]:
    for path in [*package_files(root), *files(root, *OUTSIDE)]:
        for name in imports(path):
            package, _, inside = name.partition(".")
            if inside and package in PACKAGES and package != package_of(root, path):
                yield f"{shown(root, path)} imports {name}: import it from {package}"


@rule
def every_folder_is_a_room(root: Path) -> Iterator[str]:
    for package, rooms in ROOMS.items():
        found = {path.parent.name for path in (root / package).glob("*/*.py")}
        for name in found ^ set(rooms):
            yield f"{package}/{name} is a folder or a room, but not both"


@rule
def rooms_import_earlier_rooms_only(root: Path) -> Iterator[str]:
    for package, rooms in ROOMS.items():
        for number, room in enumerate(rooms):
            allowed = {*rooms[:number]} - APART.get((package, room), set()) | {room}
            for path in files(root, f"{package}/{room}"):
                for imported in rooms_imported(package, path) - allowed:
                    yield f"{shown(root, path)} imports the room {imported}"


@rule
def every_room_says_what_flows_in_and_out_and_what_it_imports(root: Path) -> Iterator[str]:
    for package, room in every_room():
        init = root / package / room / "__init__.py"
        text = ast.get_docstring(parsed(init.read_text())) or ""
        for word in ("In", "Out", "Imports" if room else "mport"):
            if word not in text:
                yield f"{shown(root, init)} does not say {word!r}"
        if not room or "Imports" not in text:
            continue
        said = text.partition("Imports")[2]
        for path in files(root, f"{package}/{room}"):
            for imported in rooms_imported(package, path) - {room}:
                if imported not in said and "all" not in said and "before" not in said:
                    yield f"{shown(root, init)} does not say that it imports {imported}"


@rule
def rooms_stay_small(root: Path) -> Iterator[str]:
    for package, room in every_room():
        count = len([path for path in (root / package / room).glob("*.py") if path.name != "__init__.py"])
        if room and count > MOST_FILES:
            yield f"{package}/{room} has {count} files, more than {MOST_FILES}: give it rooms"


@rule
def ray_and_spark_stay_in_their_rooms(root: Path) -> Iterator[str]:
    for path in package_files(root):
        for name in imports(path):
            module = name.split(".")[0]
            if module == "ray" and path.parent.name != "on_ray":
                yield f"{shown(root, path)} imports {name}: only rooms called on_ray may"
            if module == "pyspark" and package_of(root, path) != "spark_bridge":
                yield f"{shown(root, path)} imports {name}: only spark_bridge may"


@rule
def nothing_is_unpickled_or_hashed_by_process(root: Path) -> Iterator[str]:
    for path in package_files(root):
        tree = parsed(path.read_text())
        own = {id(node) for method in ast.walk(tree) if _is_hash_method(method) for node in ast.walk(method)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                pickles = node.value.id in {"pickle", "cloudpickle"} and node.attr in {"load", "loads"}
                if pickles and shown(root, path) not in MAY_UNPICKLE:
                    yield f"{shown(root, path)}:{node.lineno} unpickles: data from outside could run code"
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "hash" and id(node) not in own:
                yield f"{shown(root, path)}:{node.lineno} calls hash(), which differs between processes"


def _is_hash_method(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__hash__"


@rule
def streams_of_a_join_are_typed(root: Path) -> Iterator[str]:
    """Only `operators/protocol` spells or parses the name of a stream; a room's streams are declared in streams.py."""
    declared = [path for path in files(root, "operators") if path.name == "streams.py"]
    labels = {label for path in declared for label in re.findall(r'^    [A-Z_]+ = "(\w+)"', path.read_text(), re.M)}
    spelt = re.compile(rf"({'|'.join(sorted(labels))})\.[^ ]*$")
    for path in files(root, "operators"):
        if path in declared or path.parent.name == "protocol":
            continue
        for node in ast.walk(parsed(path.read_text())):
            at = f"{shown(root, path)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and spelt.match(node.value):
                yield f"{at} spells the stream {node.value!r}: use its StreamId"
            if isinstance(node, ast.Call) and any(is_text(argument) for argument in stream_arguments(node)):
                yield f"{at} names a stream by a string: use its StreamId"
            if isinstance(node, ast.Attribute) and (is_stream(node.value) or ast.unparse(node) == "SIDES.index"):
                yield f"{at} takes the name of a stream apart: use stream_of"
            if isinstance(node, ast.Compare) and is_stream(node.left) and any(map(is_text, node.comparators)):
                yield f"{at} compares the name of a stream: use the kind of stream_of"


@rule
def every_module_has_a_docstring(root: Path) -> Iterator[str]:
    for path in [*package_files(root), *files(root, *OUTSIDE)]:
        if not ast.get_docstring(parsed(path.read_text())):
            yield f"{shown(root, path)} does not say what it holds"


@rule
def comparison_operators_have_one_table(root: Path) -> Iterator[str]:
    """A second table of mirrors or negations is how `3 >= abs(x)` once lost its mirror."""
    for path in files(root, "operators"):
        if shown(root, path) == OPERATOR_TABLE:
            continue
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.Dict):
                keys, values = constants(node.keys), constants(node.values)
                if len(keys & COMPARISONS) > 1 and len(values & COMPARISONS) > 1:
                    yield f"{shown(root, path)}:{node.lineno} maps comparison operators: use {OPERATOR_TABLE}"


@rule
def whole_numbers_have_one_check(root: Path) -> Iterator[str]:
    by_hand = re.compile(r"isinstance\([\w.]+, bool\) or not isinstance\([\w.]+, int\)")
    for path in package_files(root):
        if by_hand.search(path.read_text()) and shown(root, path) not in WHOLE_NUMBER_CHECKS:
            yield f"{shown(root, path)} checks a whole number by hand: use check_whole_number"


@rule
def operators_ask_for_capabilities_not_for_classes_of_indexes(root: Path) -> Iterator[str]:
    classes = {path.stem.replace("_", "") for path in files(root, "indexes")}
    for path in files(root, "operators/engines"):
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = node.args[1]
                if isinstance(asked, ast.Name) and asked.id.lower() in classes and asked.id.endswith(("Tree", "Index")):
                    yield f"{shown(root, path)}:{node.lineno} asks whether an index is a {asked.id}"


@rule
def tests_share_code_outside_of_test_files(root: Path) -> Iterator[str]:
    for path in files(root, "tests"):
        for name in imports(path):
            if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_"):
                yield f"{shown(root, path)} imports {name}: move what is shared to a module of its own"


@rule
def words_keep_one_meaning(root: Path) -> Iterator[str]:
    """docs/glossary.md gives each word one meaning; these meant several things and are gone."""
    for path in [*package_files(root), *files(root, *OUTSIDE, "tests"), *sorted(root.glob("docs/*.md"))]:
        for word in [] if path.name in ABOUT_WORDS else RETIRED.findall(path.read_text()):
            yield f"{shown(root, path)} says {word!r}: docs/glossary.md has a word with one meaning"


def stream_arguments(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that are the name of a stream: of a batch, a copy of one, or a subscription."""
    name = ast.unparse(call.func).split(".")[-1]
    given = [keyword.value for keyword in call.keywords if keyword.arg == "stream"]
    if name == "Batch":
        return [*given, *call.args[:1]]
    return [*given, *call.args[1:]] if name.endswith("_grouping") else given


def is_stream(node: ast.expr) -> bool:
    """Whether an expression is the stream of something, as `batch.stream` is."""
    return isinstance(node, ast.Attribute) and node.attr == "stream"


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a string, with or without fields, or holds one."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(map(is_text, node.elts))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def public_names_exist() -> Iterator[str]:
    """Names that an interface promises and does not have. Needs the installed packages, not only their sources."""
    for package in PACKAGES:
        interface = importlib.import_module(package)
        for name in interface.__all__:
            if not hasattr(interface, name):
                yield f"{package} has no {name}"


def every_room() -> list[tuple[str, str]]:
    """Each package and room; an empty room stands for the package itself."""
    return [*((package, "") for package in PACKAGES), *((p, room) for p, rooms in ROOMS.items() for room in rooms)]


def files(root: Path, *folders: str) -> list[Path]:
    """The Python files of some folders, in order."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def package_files(root: Path) -> list[Path]:
    """The Python files of all packages."""
    return files(root, *PACKAGES)


def package_of(root: Path, path: Path) -> str:
    """The top-level folder of a file."""
    return path.relative_to(root).parts[0]


def shown(root: Path, path: Path) -> str:
    """A file's name as a breach shows it."""
    return path.relative_to(root).as_posix()


def imports(path: Path) -> list[str]:
    """The modules that a file imports, anywhere in it."""
    return _imports(path.read_text())


def rooms_imported(package: str, path: Path) -> set[str]:
    """The rooms of a package that a file imports."""
    prefix = package.replace("/", ".") + "."
    names = {name.removeprefix(prefix).split(".")[0] for name in imports(path) if name.startswith(prefix)}
    return names & set(ROOMS[package])


def constants(nodes: list[ast.expr | None] | list[ast.expr]) -> set[object]:
    """The literal values among some expressions."""
    return {node.value for node in nodes if isinstance(node, ast.Constant)}


@cache
def parsed(text: str) -> ast.Module:
    """The syntax tree of a source text."""
    return ast.parse(text)


@cache
def _imports(text: str) -> list[str]:
    found = []
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return found
