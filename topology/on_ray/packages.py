"""Our packages on the machines of a cluster: who has them, who gets them, who needs an installation.

Each node is asked once, by a small task that travels by value. Nodes that lack our packages, or have other code of the
same version (a checkout under development), get ours through Ray's `runtime_env`. That starts new processes there, so
it is used only where it is needed. What cannot be sent this way (another version, missing libraries) is an error that
names the nodes and what to install.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from topology.graph.by_value import OUR_PACKAGES
from topology.graph.errors import ClusterError, MissingPackageError
from topology.placement.cluster_node import ClusterNode

REQUIRED = (
    "cloudpickle", "cryptography", "grpc", "lazy_loader", "numba", "numpy", "pyarrow", "sortedcontainers", "sqlglot",
)  # fmt: skip
"""What our packages import on a worker. Ray is there; Spark is needed only where a program uses it."""

ANSWER_SECONDS = 60.0
_NOT_SENT = ["__pycache__", "*.pyc", "*.nbi", "*.nbc"]

_known: dict[str, Installed] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Installed:
    """What a process finds.

    version: of interlace; None if it is not there.
    digest:  of the sources of our packages.
    lacking: the names in REQUIRED that cannot be imported.
    """

    version: str | None
    digest: str
    lacking: tuple[str, ...] = ()


def runtime_env_for(nodes: Sequence[ClusterNode]) -> dict[str, Any]:
    """Return the `runtime_env` with which an actor on any of these nodes can import our packages; often empty.

    Raises a `MissingPackageError` if that is impossible. The node of this process is not asked: its workers find what
    this process has imported, with `preparation`.
    """
    here = ray.get_runtime_context().get_node_id()
    others = [node for node in nodes if node.id != here]
    if not others:
        return {}
    ours = Installed(*_look()())
    found = _ask(others)
    if not must_ship(ours, [(node, found[node.id]) for node in others]):
        return {}
    return _shipped()


def must_ship(ours: Installed, found: Iterable[tuple[ClusterNode, Installed]]) -> bool:
    """Whether some node needs our packages; raises a `MissingPackageError` if sending them would not be enough."""
    found = list(found)
    lacking = [(node, there.lacking) for node, there in found if there.lacking]
    if lacking:
        named = "; ".join(f"node {node} lacks {', '.join(names)}" for node, names in lacking)
        raise MissingPackageError(f"{named}: install interlace {ours.version} on every node, which brings them")
    other = [(node, there.version) for node, there in found if there.version not in (None, ours.version)]
    if other:
        named = "; ".join(f"node {node} has interlace {version}" for node, version in other)
        raise MissingPackageError(
            f"{named}, but this program has {ours.version}: install the same version on every node "
            f"(pip install interlace=={ours.version})"
        )
    return any(there.digest != ours.digest for _, there in found)


def preparation() -> Callable[[], None]:
    """Return a function that lets a worker on this machine find the modules that this process finds.

    Send it to an actor and call it there before anything of ours is imported. It does nothing on other machines, where
    the same paths would lead to other files or nowhere. Ray sends it by value, because it is defined inside a function.
    """

    def machine() -> tuple[str, int, int]:  # when the kernel was started, and which file system is the root
        from pathlib import Path

        boot, root = Path("/proc/sys/kernel/random/boot_id"), Path("/").stat()
        return boot.read_text() if boot.exists() else "", root.st_dev, root.st_ino

    paths, launching = [str(Path(path).absolute()) for path in sys.path], machine()

    def prepare() -> None:
        import sys

        if machine() == launching:
            sys.path.extend(path for path in paths if path not in sys.path)

    return prepare


def _look() -> Callable[[], tuple[str | None, str, tuple[str, ...]]]:
    """Return a function that says what the process finds that calls it; it imports nothing of ours but the version."""
    packages, required, prepare = OUR_PACKAGES, REQUIRED, preparation()

    def look() -> tuple[str | None, str, tuple[str, ...]]:
        import hashlib
        import importlib
        import importlib.util
        from pathlib import Path

        prepare()
        digest = hashlib.sha256()
        lacking = tuple(name for name in required if importlib.util.find_spec(name) is None)
        for package in packages:
            spec = importlib.util.find_spec(package)
            if spec is None or not spec.submodule_search_locations:
                return None, "", lacking
            folder = spec.submodule_search_locations[0]
            for file in sorted(Path(folder).rglob("*.py*")):
                if file.suffix in (".py", ".pyi"):
                    digest.update(f"{package}/{file.relative_to(folder)}\n".encode() + file.read_bytes())
        return importlib.import_module("interlace").__version__, digest.hexdigest(), lacking

    return look


def _ask(nodes: Sequence[ClusterNode]) -> dict[str, Installed]:
    """Ask each node that has not been asked before."""
    with _lock:
        unknown = [node for node in nodes if node.id not in _known]
        look = ray.remote(num_cpus=0, max_retries=0)(_look())
        asked = {
            look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)).remote(): node
            for node in unknown
        }
        answered, silent = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_SECONDS) if asked else ([], [])
        if silent:
            named = ", ".join(str(asked[reference]) for reference in silent)
            raise ClusterError(
                f"no answer in {ANSWER_SECONDS:g} s from node {named}: see whether Ray can start processes there"
            )
        for reference in answered:
            _known[asked[reference].id] = Installed(*ray.get(reference))
        return {node.id: _known[node.id] for node in nodes}


def _shipped() -> dict[str, Any]:
    """Upload our packages to the cluster, beside the modules that the program itself ships."""
    from ray._private.runtime_env.py_modules import upload_py_modules_if_needed  # what ray.init itself calls

    folders = []
    for package in OUR_PACKAGES:
        spec = importlib.util.find_spec(package)
        locations = list(spec.submodule_search_locations or ()) if spec is not None else []
        if len(locations) != 1 or not Path(locations[0]).is_dir():
            raise MissingPackageError(
                f"'{package}' is not in a folder here and cannot be sent: install interlace on every node"
            )
        folders.append(locations[0])
    with tempfile.TemporaryDirectory() as scratch:
        described = {"py_modules": folders, "excludes": _NOT_SENT}
        uploaded = upload_py_modules_if_needed(described, include_gitignore=False, scratch_dir=scratch)["py_modules"]
    theirs = list(ray.get_runtime_context().runtime_env.get("py_modules", ()))
    return {"py_modules": [*dict.fromkeys([*theirs, *uploaded])]}
