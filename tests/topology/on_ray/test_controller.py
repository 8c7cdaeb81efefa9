"""The controller without Ray: what it keeps for the process that takes its place, and what that does first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import ray

from topology import Placement, State, StoppedError
from topology.handle.log_lines import LogLine
from topology.on_ray import charter as keeping
from topology.on_ray import controller as controlling
from topology.on_ray.by_value import dumps
from topology.on_ray.charter import Access, Charter, Layout
from topology.on_ray.controller import ControllerProcess
from topology.on_ray.lease import LeaseSeconds
from topology.on_ray.worker_actor import KeptState
from topology.security.tokens import Authority, Grant, Right

AUTHORITY = Authority()
LAYOUT = Layout(b"", b"", Placement(()), (), b"", ("gate", 0))
CHARTER = Charter(
    "kept", "launch", LAYOUT, (), (), Access(AUTHORITY, AUTHORITY.issue(Grant(Right.CHANNEL)), {}), 1, LeaseSeconds(),
    False, None, None, lambda: None, state=KeptState("state", "kept", ("gate", 0)),
)  # fmt: skip


class Store(dict[str, bytes]):
    """What Ray keeps for its actors."""

    def _internal_kv_put(self, key: str, value: bytes | str, overwrite: bool, namespace: str) -> None:
        self[key] = value if isinstance(value, bytes) else value.encode()

    def _internal_kv_get(self, key: str, namespace: str) -> bytes | None:
        return self.get(key)

    def _internal_kv_del(self, key: str, namespace: str) -> None:
        self.pop(key, None)


class Workers:
    """A workforce that is always there; `ending` holds up its end."""

    def __init__(self) -> None:
        self.life = 0
        self.active = True
        self.workers = ()
        self.log: list[str] = []
        self.moving = asyncio.Event()
        self.ending = asyncio.Event()
        self.ending.set()

    async def start(self) -> None:
        self.log.append("start")

    async def start_again(self) -> None:
        self.log.append("start again")

    async def start_with(self, charter: Charter) -> None:
        self.moving.set()
        await asyncio.Event().wait()

    async def end_strangers(self) -> None:
        self.log.append("end strangers")

    async def end(self) -> None:
        self.log.append("end")
        await self.ending.wait()

    async def last_metrics(self) -> tuple[()]:
        return ()

    async def set_active(self, active: bool) -> None:
        self.active = active


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    monkeypatch.setattr(keeping, "internal_kv", store)
    monkeypatch.setattr(controlling, "RENEWAL_SECONDS", 0.001)
    monkeypatch.setattr(ray, "kill", lambda actor: actor.append("killed"))
    return store


def controller(again: bool = False) -> tuple[ControllerProcess, Workers, list[str]]:
    killed: list[str] = []
    made = ControllerProcess(CHARTER, killed, again)
    active = made._workforce.active
    made._workforce = workers = Workers()  # type: ignore[assignment]
    workers.active = active
    return made, workers, killed


async def running() -> tuple[ControllerProcess, Workers, list[str]]:
    made, workers, killed = controller()
    await made.begin()
    while (await made.status()).state is not State.RUNNING:
        await asyncio.sleep(0.001)
    return made, workers, killed


def done(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 60))


def test_a_stop_that_was_begun_is_finished_by_a_new_process(store: Store) -> None:
    async def run() -> None:
        first, workers, _ = await running()
        workers.ending.clear()
        stopping = asyncio.ensure_future(first.stop())
        while "end" not in workers.log:
            await asyncio.sleep(0.001)
        stopping.cancel()  # the process dies here

        second, successors, killed = controller(again=True)
        assert (await second.status()).state is State.STOPPED
        await second.wake()
        while not killed:
            await asyncio.sleep(0.001)
        assert successors.log == ["end strangers"]

    done(run())
    assert store == {}


def test_a_new_process_starts_a_topology_again_that_takes_no_rows(store: Store) -> None:
    async def run() -> None:
        first, _, _ = await running()
        await first.set_active(False)
        first._lines.add([LogLine(0.0, "INFO", "before")])
        (before,) = await first.logs(-1)

        second, successors, _ = controller(again=True)
        second._lines.add([LogLine(0.0, "INFO", "after")])
        assert [line.text for line in await second.logs(before.number)] == ["after"]
        assert (await second.status()).state is State.RECOVERING
        await second.wake()
        while (await second.status()).state is not State.RUNNING:
            await asyncio.sleep(0.001)
        status = await second.status()
        assert successors.log == ["start again"]
        assert not status.active
        assert (await second.follow(None, -1, 0.0)).active is False

    done(run())


def test_whoever_rebalances_a_topology_that_is_stopped_is_told(store: Store) -> None:
    async def run() -> None:
        process, workers, _ = await running()
        moving = asyncio.ensure_future(process.rebalance(dumps(LAYOUT)))
        await workers.moving.wait()
        await process.stop()
        with pytest.raises(StoppedError, match="was stopped while it was rebalanced"):
            await moving

    done(run())
