"""`import interlace as il`: every public name, nothing loaded before it is used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import interlace as il

STUB = Path(il.__file__).with_suffix(".pyi")
HEAVY = ("ray", "pyspark", "numba", "pandas", "numpy", "pyarrow")


def test_importing_it_loads_nothing_heavy() -> None:
    program = f"import sys, interlace; print([name for name in {HEAVY!r} if name in sys.modules])"
    started = time.perf_counter()
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=STUB.parents[1]
    )
    print(f"import interlace, with the start of Python: {time.perf_counter() - started:.2f} s")
    assert shown.stdout.strip() == "[]", shown.stderr


def test_a_join_of_expressions_loads_neither_sql_nor_pandas_nor_a_compiler() -> None:
    program = "import sys, interlace as il; il.StreamJoin('R', 'S', il.stream('R').a < il.stream('S').a, "
    program += "il.CountWindow(10)).topology(); "
    program += "print([name for name in ('ray', 'pyspark', 'numba', 'pandas', 'sqlglot') if name in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=STUB.parents[1]
    )
    assert shown.stdout.strip() == "[]", shown.stderr


def test_the_stub_names_each_thing_once() -> None:
    names = [
        alias.name
        for node in ast.walk(ast.parse(STUB.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(names) == il.__all__
    assert len(set(names)) == len(names)


def test_each_name_is_that_of_its_package() -> None:
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            package = importlib.import_module(node.module or "")
            for alias in node.names:
                assert getattr(il, alias.name) is getattr(package, alias.name)
    assert set(il.__all__) < set(dir(il))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'interlace' has no attribute 'StreamJoint'"):
        il.StreamJoint  # type: ignore[attr-defined]  # noqa: B018


def test_a_join_needs_no_other_import() -> None:
    join = il.StreamJoin("R", "S", il.stream("R").a < il.stream("S").a, il.CountWindow(10))
    result = join.collect({"R": pa.table({"a": [1]}), "S": pa.table({"a": [2]})}, il.LocalRuntime())
    assert result.to_pylist() == [{"R.a": 1, "S.a": 2}]
