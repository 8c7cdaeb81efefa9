"""The code that executors import, as one file that Spark sends to them: they need no installation of ours."""

from __future__ import annotations

import ast
import importlib.util
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from spark_bridge.probe import PACKAGES, code_digest

_INTERFACE = '''"""The names of the package's interface, imported when they are used."""

import importlib

_WHERE = {names!r}


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    return getattr(importlib.import_module(_WHERE[name], __name__), name)
'''
"""Stands for `__init__.py`, which reads a file beside it: there is none beside a module in an archive."""

_DATE = (1980, 1, 1, 0, 0, 0)


@cache
def shipped_code() -> Path:
    """Return an archive of our packages that executors import; the same code gives the same bytes and the same name."""
    folder = Path(tempfile.mkdtemp(prefix="interlace-"))
    path = folder / f"interlace_on_executors_{code_digest()}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for name, content in sorted(_sources(package)):
                archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return path


def _sources(package: str) -> list[tuple[str, str]]:
    spec = importlib.util.find_spec(package)
    assert spec is not None, "it has been imported"
    assert spec.origin is not None, "it has an __init__"
    folder = Path(spec.origin).parent
    found = []
    for path in folder.rglob("*.py"):
        stub = path.with_suffix(".pyi")
        content = _INTERFACE.format(names=_interface(stub)) if stub.exists() else path.read_text()
        found.append((path.relative_to(folder.parent).as_posix(), content))
    return found


def _interface(stub: Path) -> dict[str, str]:
    """By name, the module of the package that it comes from."""
    imports = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
    return {name.name: f".{node.module}" for node in imports for name in node.names}
