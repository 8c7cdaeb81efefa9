"""interlace: the public names of the four packages behind one import, ``import interlace as il``, and `il.join`.

In: a name such as `il.StreamJoin`. Out: the object of that name, loaded from its package when it is first used, so
that the import itself loads neither Ray nor Spark nor Numba. Imports topology, indexes, operators and spark_bridge;
none of them imports this package.

The stub beside this file, `__init__.pyi`, is the one list of names and their packages: type checkers and the lookup
below both read it.
"""

import ast
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"


def _packages_by_name() -> dict[str, str]:
    """The package, or module of this one, of each public name, read from the stub; this package for its rooms."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text())
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    return {alias.name: statement.module or "" for statement in imports for alias in statement.names}


_PACKAGES = _packages_by_name()

__all__ = sorted(_PACKAGES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _PACKAGES:
        raise AttributeError(f"module 'interlace' has no attribute '{name}'")
    package = _PACKAGES[name]
    value: object = import_module(f"{package}.{name}") if package == __name__ else getattr(import_module(package), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
