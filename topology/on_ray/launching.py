"""Launches a topology from the side of the program: claims its name, makes its controller and waits until it runs."""

from __future__ import annotations

import itertools
import logging
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace as changed
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, TextIO

import grpc
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from topology.graph.errors import NameTakenError, TaskError, TopologyError
from topology.graph.graph import Topology
from topology.graph.share import share
from topology.handle.live_line import LiveLine
from topology.handle.status import State
from topology.on_ray.by_value import dumps
from topology.on_ray.charter import NAMESPACE, Access, Charter, Description, Layout, Report, controller_name
from topology.on_ray.controller import controller_class
from topology.on_ray.lease import RENEWAL_SECONDS
from topology.on_ray.workforce import START_SECONDS
from topology.placement.cluster_node import ClusterNode
from topology.placement.place import place
from topology.placement.wishes import Wish
from topology.process.hosted_task import GroupSettings
from topology.process.state import with_state
from topology.security.tokens import Authority, Grant, Right

ANSWER_SECONDS = 10.0
"""How long a controller may take for a small answer before it is taken to be frozen."""

CONTROLLER_RESTARTS = 1000
"""How often Ray replaces the controller of a topology whose state is kept."""

PRESTART_SECONDS = 1.0
IDLE_SECONDS = 10
"""How long a process waits for a worker that needs it."""

log = logging.getLogger("interlace")


def new_name() -> str:
    """Return a name, of this program or of a launch, that nobody else uses."""
    return uuid.uuid4().hex


def issue_access(inputs: Iterable[str], sinks: Iterable[str]) -> Access:
    """Make the tokens of a topology."""
    authority = Authority()
    channel = authority.issue(Grant(Right.CHANNEL))
    clients = {(name, control): authority.issue(*rights) for name, control, rights in _rights(inputs, sinks)}
    return Access(authority, channel, clients)


def _rights(inputs: Iterable[str], sinks: Iterable[str]) -> Iterable[tuple[str, bool, tuple[Grant, ...]]]:
    for name in inputs:
        yield name, False, (Grant(Right.WRITE, name),)
        yield name, True, (Grant(Right.WRITE, name), Grant(Right.CONTROL, name))
    for name in sinks:
        for control in (False, True):
            yield name, control, (Grant(Right.READ, name),)


def lay_out(
    topology: Topology,
    nodes: Sequence[ClusterNode],
    wish: Wish,
    settings: GroupSettings,
    make_handle: bytes,
    durable: bool,
) -> Layout:
    """Divide a topology among workers. `durable`: its state is kept, in the worker of its inputs."""
    topology = with_state(topology) if durable else topology
    decides = topology.deciding if durable else None
    deciding = None if decides is None else (decides.name, 0)
    together = frozenset() if deciding is None else frozenset([*topology.entries, deciding[0]])
    placement = place(topology, nodes, wish, together)
    return Layout(
        dumps(topology),
        make_handle,
        placement,
        tuple(dumps((share(topology, plan.tasks), settings)) for plan in placement.workers),
        dumps((settings, wish)),
        deciding,
    )


def find_controller(name: str) -> Any | None:
    """Return the controller of a topology, or None if none runs under that name."""
    try:
        return ray.get_actor(controller_name(name), NAMESPACE)
    except ValueError:
        return None


def running_names() -> list[str]:
    """The names of all topologies on this cluster."""
    suffix = controller_name("")
    actors = ray.util.list_named_actors(all_namespaces=True)
    names = [actor["name"] for actor in actors if actor["namespace"] == NAMESPACE]
    return sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))


def claim(charter: Charter, named: bool, replace: bool) -> Any:
    """Make the controller of a new topology and return it.

    Ray gives a name to one actor only, so that of two programs that launch at once one succeeds. A name that the user
    did not choose gets a number if it is taken.
    """
    for name in _names(charter.name, named):
        running = find_controller(name)
        if running is not None and named:
            if not replace and _is_led(running):
                raise NameTakenError(
                    f"a topology called '{name}' is running: use attach('{name}') to work with it, "
                    f"launch(..., replace=True) to stop it and take its place, or another name"
                )
            end_controller(running)
        elif running is not None:
            continue
        try:
            return _make(charter, name)
        except ValueError:  # another program was faster
            if named:
                raise NameTakenError(
                    f"another program has just launched a topology called '{name}': use attach('{name}')"
                ) from None
    raise AssertionError("there is always another name")


def start_processes(workers: int) -> None:
    """Let Ray start processes on this node while the controller starts; they wait for the workers.

    Until the controller has started and asks for workers, all processors but one would be idle. So there is a process
    for each of the others, but no more than this node needs if the workers are spread evenly. A process that is not
    used ends soon. Ray uses it only for actors without a `runtime_env`. Where a process is idle already, the controller
    gets it and asks for the workers at once, so there is nothing to gain.

    Ray has no public calls for this. If they fail, or another version of Ray does not have them, Ray starts all
    processes when it is asked for the workers.
    """
    context = ray.get_runtime_context()
    nodes, here = [node for node in ray.nodes() if node["Alive"]], context.get_node_id()
    node = next((node for node in nodes if node["NodeID"] == here), None)
    if node is None or context.runtime_env:
        return
    count = min(-(-workers // len(nodes)), int(node["Resources"].get("CPU", 0)) - 1)
    if count > 0:
        with suppress(grpc.RpcError, ImportError, AttributeError, ValueError):
            _ask_for_processes(f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}", context.get_job_id(), count)


def _ask_for_processes(raylet_address: str, job: str, count: int) -> None:
    from ray._private.grpc_utils import init_grpc_channel
    from ray.core.generated import node_manager_pb2
    from ray.core.generated.node_manager_pb2_grpc import NodeManagerServiceStub

    request = node_manager_pb2.PrestartWorkersRequest(
        job_id=bytes.fromhex(job), keep_alive_duration_secs=IDLE_SECONDS, num_workers=count
    )
    request.runtime_env_info.serialized_runtime_env = "{}"
    with init_grpc_channel(raylet_address) as channel:
        raylet = NodeManagerServiceStub(channel)
        known = raylet.GetWorkerPIDs(node_manager_pb2.GetWorkerPIDsRequest(), timeout=PRESTART_SECONDS)
        if not any(map(_is_idle, known.pids)):
            raylet.PrestartWorkers(request, timeout=PRESTART_SECONDS)


def _is_idle(process: int) -> bool:
    """Whether a process of Ray waits for work, as the name says that Ray gives it."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::IDLE")
    except OSError:  # it has ended
        return False


def wait_until_running(controller: Any, owner: str | None, shown: bool) -> Description:
    """Start the topology and show what it waits for; raise why it could not be started."""
    progress = LaunchProgress(shown)
    note = ["starting processes"]
    with progress, LiveLine(lambda: f"launching on Ray: {note[0]}"):
        ray.get(controller.begin.remote(), timeout=START_SECONDS)
        report = Report(-1, State.STARTING)
        while report.state in (State.STARTING, State.RECOVERING):
            report = ray.get(controller.follow.remote(owner, report.version, RENEWAL_SECONDS), timeout=START_SECONDS)
            progress.show(report.note)
            note[0] = report.note or note[0]
    if report.state is not State.RUNNING:
        raise launch_error(report)
    described: Description = ray.get(controller.describe.remote(), timeout=START_SECONDS)
    return described


def launch_error(report: Report) -> Exception:
    """The error of a topology that failed."""
    if report.failed_task is None:
        return TopologyError(report.error)
    return TaskError(*report.failed_task, report.error)


def end_controller(controller: Any) -> None:
    """Stop a topology and wait until its controller has gone; a controller that does not answer is killed."""
    try:
        ray.get(controller.stop.remote(), timeout=ANSWER_SECONDS * 2)
    except ray.exceptions.RayError:
        pass
    ray.kill(controller)
    try:
        ray.get(controller.status.remote(), timeout=ANSWER_SECONDS)
    except ray.exceptions.RayError:
        pass  # now it is gone, and its name is free


def _names(wanted: str, chosen_by_user: bool) -> Iterator[str]:
    yield wanted
    if not chosen_by_user:
        for number in itertools.count(2):
            yield f"{wanted}-{number}"


def _is_led(controller: Any) -> bool:
    """Whether a topology has a controller that answers, and an owner that holds its lease."""
    try:
        return bool(ray.get(controller.is_led.remote(), timeout=ANSWER_SECONDS))
    except ray.exceptions.RayError:
        return False


def _make(charter: Charter, name: str) -> Any:
    options: dict[str, Any] = {
        "name": controller_name(name),
        "namespace": NAMESPACE,
        "lifetime": "detached",
        "max_restarts": 0 if charter.state is None else CONTROLLER_RESTARTS,
        "max_task_retries": 0,
        "num_cpus": 0,
        # Beside the program: if another node is cut off, the two still reach each other, and it is named. Not `soft`:
        # Ray then puts an actor without resources on any node. A topology that goes on without its program and has a
        # state must survive the loss of that node, too, so its controller may be on any.
        "scheduling_strategy": NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=charter.owner is None and charter.state is not None
        ),
    }
    if charter.runtime_env is not None:
        options["runtime_env"] = dict(charter.runtime_env)
    actor = ray.remote(controller_class(controller_name(name))).options(**options)
    return actor.remote(charter.prepare, dumps(changed(charter, name=name)))


class LaunchProgress:
    """Shows on a terminal what a launch waits for; elsewhere it only logs."""

    def __init__(self, shown: bool = True, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._live = shown and self._out.isatty()
        self._last = ""

    def __enter__(self) -> LaunchProgress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live and self._last:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def show(self, note: str) -> None:
        """Show a new note in place of the last."""
        if note and note != self._last:
            self._last = note
            log.info("%s", note)
            if self._live:
                fits = get_terminal_size().columns - len("...")  # a line that is wrapped could not be taken back
                self._out.write(f"\r\x1b[K{note[:fits]}...")
                self._out.flush()
