"""What to run: a join or a topology in a Python file (`FILE.py:NAME`), or described in a YAML file."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from interlace.command_line.outcome import Exit, Failure, mistake
from interlace.files.errors import did_you_mean

if TYPE_CHECKING:
    from operators import MultiJoin, StreamJoin
    from topology import Handle, Runtime, Topology

    Ready = StreamJoin | MultiJoin | Topology

YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Target:
    """A join or a topology, and the files of its inputs where it names them itself."""

    value: Ready
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def topology(self) -> Topology:
        """What runs."""
        from topology import Topology

        return self.value if isinstance(self.value, Topology) else self.value.topology()

    @property
    def join(self) -> StreamJoin | None:
        """The join, if it is one of two streams."""
        from operators import StreamJoin

        return self.value if isinstance(self.value, StreamJoin) else None

    def launch(self, runtime: Runtime, **options: Any) -> Handle:
        """Start it; options as for `Runtime.launch`."""
        from topology import Topology

        if isinstance(self.value, Topology):
            return runtime.launch(self.value, **options)
        return self.value.launch(runtime, **options)

    @property
    def event_times(self) -> Mapping[str, tuple[str | None, bool]]:
        """Of each input the column that orders its rows, and whether they may come out of order within a bound."""
        from topology import Topology

        if isinstance(self.value, Topology):
            inputs = self.value.inputs
            return {name: (described.event_time, described.disordered) for name, described in inputs.items()}
        resolved = self.value.resolved
        return {name: (column, name in resolved.bounds) for name, column in resolved.event_times.items()}


def find_target(text: str) -> Target:
    """The target that `FILE.py:NAME`, `FILE.py` or `FILE.yaml` names."""
    file, colon, name = text, "", ""
    if not os.path.exists(file):
        file, colon, name = text.rpartition(":")
    if not os.path.exists(file or text):
        raise Failure(f"there is no file '{file or text}'{_close_to(file or text)}", Exit.NOT_FOUND)
    if file.endswith(YAML):
        from interlace.yaml_form.topology_file import read_topology

        if colon:
            raise mistake(f"'{text}': a YAML file describes one topology, so it takes no name behind the colon")
        found = read_topology(file)
        return Target(found.target, found.paths)
    if not file.endswith(".py"):
        raise mistake(f"'{text}' is neither FILE.py:NAME nor FILE.yaml")
    module = _loaded(file)
    return Target(_made(file, name, _named(module, file, name)))


def _loaded(file: str) -> ModuleType:
    """The module of a Python file, which may import what lies beside it."""
    path = os.path.abspath(file)
    folder, name = os.path.dirname(path), os.path.basename(path).removesuffix(".py")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name)
        if before is not None:
            sys.modules[name] = before
        raise mistake(f"'{file}' cannot be loaded: {_blamed(path, error)}") from error
    return module


def _named(module: ModuleType, file: str, name: str) -> Any:
    values = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    ready = [key for key, value in values.items() if _is_ready(value)]
    if not name:
        if len(ready) == 1:
            return values[ready[0]]
        found = f"one of {', '.join(ready)}" if ready else "of a join, a topology or a function that returns one"
        raise mistake(f"'{file}' does not say what to run: write {file}:NAME, with the name {found}")
    value: Any = values.get(name)
    if value is None:
        among = [
            key for key, each in values.items() if _is_ready(each) or getattr(each, "__module__", "") == module.__name__
        ]
        raise Failure(f"'{file}' has no '{name}'{did_you_mean(name, among)}", Exit.NOT_FOUND)
    return value


def _made(file: str, name: str, value: Any) -> Ready:
    """The join or topology itself; a function is called."""
    if callable(value) and not _is_ready(value):
        try:
            value = value()
        except Exception as error:
            raise mistake(f"{name}() of '{file}' failed: {_blamed(os.path.abspath(file), error)}") from error
    if not _is_ready(value):
        kind = type(value).__name__
        raise mistake(
            f"'{name}' of '{file}' is a {kind}: it must be a StreamJoin, a MultiJoin, a Topology or a function without "
            f"arguments that returns one"
        )
    from topology import TopologyBuilder

    found: Ready = value.build() if isinstance(value, TopologyBuilder) else value
    return found


def _is_ready(value: Any) -> bool:
    from operators import MultiJoin, StreamJoin
    from topology import Topology, TopologyBuilder

    return isinstance(value, StreamJoin | MultiJoin | Topology | TopologyBuilder)


def _blamed(path: str, error: BaseException) -> str:
    """The last line of the user's file that the error passed, and the error."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    place = f"line {lines[-1]}: " if lines else ""
    kind = "" if type(error).__module__.partition(".")[0] in ("operators", "topology") else f"{type(error).__name__}: "
    return f"{place}{kind}{error}"


def _close_to(path: str) -> str:
    folder = os.path.dirname(path) or "."
    known = [name for name in os.listdir(folder) if name.endswith((".py", *YAML))] if os.path.isdir(folder) else []
    return did_you_mean(os.path.basename(path), known)
