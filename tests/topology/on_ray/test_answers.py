"""Waiting for many processes: by progress, not by a clock."""

from typing import Any

import pytest
import ray

from topology import TaskError
from topology.on_ray.answers import gather

TASKS = [("in", 0), ("bolt", 0), ("bolt", 1)]


class SlowRay:
    """Stands in for Ray: one process answers per wait, until `silent_after` have answered."""

    def __init__(self, silent_after: int) -> None:
        self.left = silent_after
        self.waits: list[float] = []

    def wait(self, references: list[str], num_returns: int, timeout: float) -> tuple[list[str], list[str]]:
        self.waits.append(timeout)
        if self.left == 0:
            return [], references
        self.left -= 1
        return references[-1:], references[:-1]

    def get(self, reference: str) -> str:
        return f"answer to {reference}"


def asked() -> dict[tuple[str, int], Any]:
    return {task: f"call {number}" for number, task in enumerate(TASKS)}


def test_each_answer_begins_a_new_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowRay(silent_after=3)
    monkeypatch.setattr(ray, "wait", slow.wait)
    monkeypatch.setattr(ray, "get", slow.get)
    assert gather(asked(), 120.0) == {task: f"answer to call {number}" for number, task in enumerate(TASKS)}
    assert slow.waits == [120.0] * 3


def test_silence_names_the_tasks_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowRay(silent_after=1)
    monkeypatch.setattr(ray, "wait", slow.wait)
    monkeypatch.setattr(ray, "get", slow.get)
    said = r"no process answered for 120 seconds; 2 of 3 are missing: in\[0\], bolt\[0\]"
    with pytest.raises(TaskError, match=said):
        gather(asked(), 120.0)


@pytest.mark.usefixtures("ray_cluster")
def test_a_process_that_died_is_named() -> None:
    class Mortal:
        def answer(self) -> int:
            return 1

        def die(self) -> None:
            import os

            os._exit(1)

    actor: Any = ray.remote(num_cpus=0)(Mortal)
    healthy, dying = actor.remote(), actor.remote()
    calls = {("bolt", 0): healthy.answer.remote(), ("bolt", 1): dying.die.remote()}
    with pytest.raises(TaskError, match="the process of component 'bolt', task 1, died"):
        gather(calls, 120.0)
    ray.kill(healthy)
