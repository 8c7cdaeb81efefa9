"""The user's code travels by value: functions and classes that other machines cannot import are sent whole.

pickle sends a function as the name of its module and its own name. That fails where the module is a script, a notebook
or a file of the user's project: other machines do not have it. cloudpickle sends code and the values that it refers to.
Here it does so for every module that is neither part of Python, nor installed, nor one of our packages.

Beyond cloudpickle: an object that is pickled by its name, such as a decorated function, is sent by value as well;
modules may refer to each other in circles; and what a module holds but cannot be sent (a lock, a connection) is left
out, with an error that names it where it is used.
"""

from __future__ import annotations

import copyreg
import functools
import io
import pickle
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

OUR_PACKAGES = ("topology", "indexes", "operators", "spark_bridge", "interlace")
"""The packages of this project, which every worker imports."""

_OF_AN_IMPORT = {"__builtins__", "__cached__", "__loader__", "__path__", "__spec__"}
_registry = threading.RLock()


def dumps(description: object) -> bytes:
    """Pickle a description with the user's code in it; raises what the pickling of a part of it raises."""
    file = io.BytesIO()
    with _registry:
        pickler = _Pickler(file)
        try:
            pickler.dump(description)
        finally:
            pickler.forget()
    return file.getvalue()


def travels_by_value(name: str | None) -> bool:
    """Whether the code of a module is sent whole, because other machines cannot be expected to have the module."""
    if name == "__main__":
        return True
    if name is None or name not in sys.modules or name.partition(".")[0] in OUR_PACKAGES:
        return False
    module = sys.modules[name]
    file = getattr(module, "__file__", None)
    if file is not None:
        return file.endswith((".py", ".pyc")) and not _is_installed(file)
    if getattr(module, "__path__", None):  # a package without __init__
        return not any(_is_installed(folder) for folder in module.__path__)
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    return origin not in ("built-in", "frozen") and "." not in name


@functools.cache
def _is_installed(file: str) -> bool:
    """Whether a file belongs to Python or an installed package; installers may link it from elsewhere."""
    paths = (Path(file).absolute(), Path(file).resolve())
    return any({"site-packages", "dist-packages"} & set(path.parts) for path in paths) or any(
        path.is_relative_to(folder) for path in paths for folder in _installed_folders()
    )


@functools.cache
def _installed_folders() -> tuple[Path, ...]:
    """Where Python and the packages installed for it live."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    named = [sysconfig.get_paths()[kind] for kind in kinds] + [site.getusersitepackages()]
    return tuple(path for folder in named for path in (Path(folder), Path(folder).resolve()))


class _Pickler(cloudpickle.Pickler):
    """A pickler that sends the user's modules by value.

    nested: the trial of one member of a module; other modules then count as sendable, since they are tried themselves.
    """

    def __init__(self, file: Any, nested: bool = False) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._nested = nested
        self._registered: list[ModuleType] = []

    def forget(self) -> None:
        """Leave cloudpickle's list of modules as it was."""
        for module in self._registered:
            cloudpickle.unregister_pickle_by_value(module)
        self._registered.clear()

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            if travels_by_value(obj.__name__):
                return self._reduce_module(obj)
        elif isinstance(obj, FunctionType | type):
            self._register(obj.__module__)
        elif isinstance(obj, functools._lru_cache_wrapper):
            if travels_by_value(obj.__module__):
                return _cached, (obj.__wrapped__, obj.cache_parameters())
        elif _is_pickled_by_name(obj):
            return copyreg.__newobj__, (type(obj),), vars(obj)  # type: ignore[attr-defined]
        return super().reducer_override(obj)

    def _register(self, name: str | None) -> None:
        """Tell cloudpickle to send what is defined in a module by value."""
        if not isinstance(name, str) or name == "__main__" or not travels_by_value(name):
            return
        module = sys.modules[name]
        if module.__name__ == name and name not in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.register_pickle_by_value(module)
            self._registered.append(module)

    def _reduce_module(self, module: ModuleType) -> Any:
        """A module is made empty and then filled, so that its functions may refer to it."""
        if self._nested:
            return ModuleType, (module.__name__,)
        members = {name: value for name, value in vars(module).items() if name not in _OF_AN_IMPORT}
        failures = {}
        if _failure(members):  # often nothing fails, and one trial is enough
            failures = {name: failure for name, value in members.items() if (failure := _failure(value))}
        kept = {name: value for name, value in members.items() if name not in failures}
        return _empty_module, (module.__name__, failures), kept, None, None, _fill_module


def _is_pickled_by_name(obj: Any) -> bool:
    """Whether an object stands for a name of the user's module, as the result of a decorator does."""
    if not isinstance(getattr(obj, "__dict__", None), dict) or "__qualname__" not in vars(obj):
        return False
    return travels_by_value(vars(obj).get("__module__")) and isinstance(obj.__reduce_ex__(4), str)


def _failure(value: Any) -> str:
    """Why a member of a module cannot be sent; empty if it can."""
    pickler = _Pickler(_Nowhere(), nested=True)
    try:
        pickler.dump(value)
    except Exception as error:
        return str(error) or type(error).__name__
    finally:
        pickler.forget()
    return ""


class _Nowhere:
    """A file that forgets what is written."""

    def write(self, data: Any) -> int:
        return len(data)


def _empty_module(name: str, failures: Mapping[str, str]) -> ModuleType:
    """Make a module that says why something is not in it."""
    module = ModuleType(name)

    def missing(member: str) -> Any:
        if member in failures:
            raise AttributeError(
                f"'{name}.{member}' could not be sent to another process ({failures[member]}): make it in the "
                f"function that uses it, or in build()"
            )
        raise AttributeError(f"module '{name}' has no attribute '{member}'")

    module.__dict__["__getattr__"] = missing
    return module


def _fill_module(module: ModuleType, members: Mapping[str, Any]) -> None:
    module.__dict__.update(members)


def _cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Wrap a function again that was decorated with `functools.cache` or `lru_cache`."""
    return functools.lru_cache(**parameters)(function)
