"""Small changes of the code that keeps and recovers state, made by a program: does anything notice each of them?

`python -m tests.simulation.mutants --known FILE [--sample 50] [--seeds 20]` makes mutants of the logs, the journal and
the rules of recovery, one at a time, in a copy of the project. The quick unit tests of these rooms run first, then some
seeds of the simulation. What is found is kept in FILE, and a later run goes on from it. Survivors are listed: each is
either the same program in other words, or a test that is missing.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.sensitivity import ROOT, copied, seeds_that_fail

ROOMS = ("topology/durable", "topology/journal")
FILES = ("topology/on_ray/recovery.py",)
TESTS = ("tests/topology/durable", "tests/topology/journal", "tests/topology/on_ray/test_recovery.py")
SECONDS = 600
"""A mutant that takes longer has brought a test to a standstill, which is noticed."""

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_CALLED = {"min": "max", "max": "min", "popleft": "pop", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change: the file, the number of the change in it, and what it is, for people."""

    file: str
    number: int
    what: str

    @property
    def name(self) -> str:
        return f"{self.file}#{self.number}: {self.what}"

    def text(self) -> str:
        """The file with the change."""
        tree = ast.parse((ROOT / self.file).read_text())
        for number, _ in enumerate(_changes(tree)):
            if number == self.number:
                break
        return ast.unparse(tree)


def mutants() -> list[Mutant]:
    """All of them."""
    paths = [*(path for room in ROOMS for path in sorted((ROOT / room).glob("*.py"))), *(ROOT / name for name in FILES)]
    found = []
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        found += [Mutant(name, number, what) for number, what in enumerate(_changes(ast.parse(path.read_text())))]
    return found


def _changes(tree: ast.Module) -> Iterator[str]:
    """Make each change in turn, and undo it when asked for the next."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[op, *_]) if type(op) in _COMPARED:
                before = ast.unparse(node)
                node.ops[0] = _COMPARED[type(op)]()
                yield f"line {node.lineno}: {before} -> {ast.unparse(node)}"
                node.ops[0] = op
            case ast.BoolOp(op=op):
                before = ast.unparse(node)
                node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
                yield f"line {node.lineno}: {before} -> {ast.unparse(node)}"
                node.op = op
            case ast.BinOp(op=op) if type(op) in _COMPUTED:
                before = ast.unparse(node)
                node.op = _COMPUTED[type(op)]()
                yield f"line {node.lineno}: {before} -> {ast.unparse(node)}"
                node.op = op
            case ast.AugAssign(op=op) if type(op) in _COMPUTED:
                before = ast.unparse(node)
                node.op = _COMPUTED[type(op)]()
                yield f"line {node.lineno}: {before} -> {ast.unparse(node)}"
                node.op = op
            case ast.Constant(value=bool(value) | int(value)):
                node.value = (not value) if isinstance(value, bool) else value + 1
                yield f"line {node.lineno}: {value} -> {node.value!r}"
                node.value = value
            case ast.Name(id=name) if name in _CALLED:
                node.id = _CALLED[name]
                yield f"line {node.lineno}: {name} -> {node.id}"
                node.id = name
            case ast.Attribute(attr=name) if name in _CALLED:
                node.attr = _CALLED[name]
                yield f"line {node.lineno}: {name} -> {node.attr}"
                node.attr = name
        yield from _left_out(node)


def _left_out(node: ast.AST) -> Iterator[str]:
    """Leave out one statement that is a call or an assignment to an attribute, and see a condition as always true."""
    for block in ("body", "orelse", "finalbody"):
        found = getattr(node, block, None)
        statements: list[Any] = found if isinstance(found, list) else []
        for place, statement in enumerate(statements):
            is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.YieldFrom)
            is_kept = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute)
            if is_call or (is_kept and getattr(node, "name", "") != "__init__"):
                statements[place] = ast.Pass()
                yield f"line {statement.lineno}: leave out {ast.unparse(statement).splitlines()[0]}"
                statements[place] = statement
    if isinstance(node, ast.If):
        before = node.test
        node.test = ast.Constant(value=True)
        yield f"line {node.lineno}: if {ast.unparse(before)} -> if True"
        node.test = before


def noticed_by(root: Path, seeds: int) -> str | None:
    """Who notices what was changed below a directory: the tests, or a seed; None: nobody."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--quick", *TESTS]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return "a test that does not end"
    if done.returncode:
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0].split(" - ")[0] if failed else "the tests do not start"
    found = seeds_that_fail(root, seeds) if seeds else None
    return None if found is None else f"seed {found - 1}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--known", type=Path, required=True, help="keep what is found in this file, and go on from it")
    parser.add_argument("--sample", type=int, help="try only so many more, chosen at random")
    parser.add_argument("--seeds", type=int, default=20, help="seeds for each that tests do not notice")
    given = parser.parse_args()
    known: dict[str, str | None] = json.loads(given.known.read_text()) if given.known.exists() else {}
    everyone = mutants()
    left = [mutant for mutant in everyone if mutant.name not in known]
    Random(len(known)).shuffle(left)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        copied(root)
        (root / "setup.cfg").write_text((ROOT / "setup.cfg").read_text())
        for mutant in left[: given.sample]:
            place = root / mutant.file
            whole = place.read_text()
            place.write_text(mutant.text())
            known[mutant.name] = noticed_by(root, given.seeds)
            place.write_text(whole)
            given.known.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
            print(f"{known[mutant.name] or 'SURVIVES':<60} {mutant.name}", flush=True)
    by = Counter(
        "nobody" if who is None else "a seed" if who.startswith("seed") else "a test" for who in known.values()
    )
    print(f"{len(known)} of {len(everyone)} mutants tried: noticed by {dict(by)}")
    for name, who in sorted(known.items()):
        if who is None:
            print(f"survives: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
