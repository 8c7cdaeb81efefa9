"""The desk of a cluster: one topology that does not answer hides no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import interlace as il
from interlace.web import desk as desks
from tests.topology.waiting import wait_for
from topology import ConnectionLostError, Handle, Status, UnknownTopologyError


class Cluster:
    """Stands in for a cluster: topologies of this process, and one whose controller is silent until `answers`."""

    def __init__(self, running: Handle) -> None:
        self.running = running
        self.answers = threading.Event()
        self.attached: list[str] = []

    def topologies(self, address: str | None = None) -> tuple[Status, ...]:
        if self.attached:  # the first list comes at once
            self.answers.wait()
        return (Status("failed", il.State.FAILED, (), "no such rack"), Status("silent", il.State.RUNNING, ()),
                self.running.status())  # fmt: skip

    def attach(self, name: str, address: str | None = None) -> Any:
        self.attached.append(name)
        if name == "silent":
            self.answers.wait()
            raise UnknownTopologyError("no topology called 'silent'")
        return Attached(self.running)


class Attached:
    """A handle that lets go at the end of a block."""

    def __init__(self, running: Handle) -> None:
        self._running = running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running, name)

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10)).launch(name="well") as running:
        made = Cluster(running)
        monkeypatch.setattr(desks, "attach", made.attach)
        monkeypatch.setattr(desks, "topologies", made.topologies)
        monkeypatch.setattr(desks, "joined_cluster", lambda address: nullcontext())
        monkeypatch.setattr(desks, "ATTACH_SECONDS", 0.2)
        monkeypatch.setattr(desks, "LIST_SECONDS", 0.2)
        yield made
        made.answers.set()


def test_a_silent_controller_keeps_only_those_waiting_who_ask_for_it(cluster: Cluster) -> None:
    desk = desks.ClusterDesk(interval=0.05)
    assert [status.name for status in desk.list()] == ["failed", "silent", "well"]
    with pytest.raises(ConnectionLostError, match="'silent' does not answer"):
        desk.watch("silent")
    assert desk.watch("well").now()[0].status.name == "well"
    looks, others = desk.looks()  # the list is the last one that came
    assert [look.status.name for look in looks] == ["well"]
    assert [status.name for status in others] == ["failed", "silent"]
    assert cluster.attached == ["silent", "well"]  # the first attempt goes on
    cluster.answers.set()
    wait_for(lambda: "silent" not in [thread.name.removeprefix("attaching to ") for thread in threading.enumerate()])
    with pytest.raises(UnknownTopologyError):
        desk.watch("silent")
    desk.close()


def test_a_desk_for_metrics_watches_what_nobody_has_asked_for(cluster: Cluster) -> None:
    seen = threading.Event()
    cluster.answers.set()
    desk = desks.ClusterDesk(interval=0.05, consumers=(lambda look: seen.set(),), watches_all=True)
    assert seen.wait(60)
    desk.close()
    wait_for(lambda: "watching well" not in [thread.name for thread in threading.enumerate()])


def test_a_watch_that_broke_is_replaced(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desks.ClusterDesk(interval=0.05)
    first = desk.watch("well")
    monkeypatch.setattr(first, "look", lambda: 1 / 0)
    wait_for(lambda: first.is_over)
    assert desk.watch("well") is not first
    desk.close()
