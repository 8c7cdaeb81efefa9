"""Hooks hear of every task's start, stop and error, once, and their own errors change nothing."""

from __future__ import annotations

import logging

import pytest

from tests.topology.local.pipelines import numbers, pipeline, read
from topology import LocalRuntime, MapBatches, TaskContext, TaskError, TaskHook

HEARD: list[tuple[str, str, int]] = []


class Hears(TaskHook):
    def on_start(self, context: TaskContext) -> None:
        HEARD.append(("start", context.component, context.task))

    def on_stop(self, context: TaskContext) -> None:
        HEARD.append(("stop", context.component, context.task))

    def on_error(self, context: TaskContext, error: BaseException) -> None:
        HEARD.append((repr(error), context.component, context.task))


class Fails(TaskHook):
    def on_start(self, context: TaskContext) -> None:
        raise RuntimeError("mine")


def broken(rows: object) -> None:
    raise LookupError("no such rack")


@pytest.fixture(autouse=True)
def nothing_heard() -> None:
    HEARD.clear()


TASKS = [("in", 0), ("bolt", 0), ("bolt", 1), ("results", 0)]


def test_every_task_is_heard_of_at_its_start_and_its_stop() -> None:
    with LocalRuntime(hooks=[Hears()]).launch(pipeline(parallelism=2)) as running:
        assert [("start", *task) for task in TASKS] == HEARD
        running.send("in", numbers(1, 2))
        running.finish()
        read(running)
    assert HEARD[4:] == [("stop", *task) for task in TASKS]
    running.stop()
    assert len(HEARD) == 8


def test_an_error_of_a_task_is_heard_of_before_the_topology_ends() -> None:
    with pytest.raises(TaskError), LocalRuntime(hooks=[Hears()]).launch(pipeline(MapBatches(broken))) as running:
        running.send("in", numbers(1))
        read(running)
    assert HEARD.count(("LookupError('no such rack')", "bolt", 0)) == 1
    assert HEARD.index(("LookupError('no such rack')", "bolt", 0)) < HEARD.index(("stop", "bolt", 0))


def test_an_error_of_a_hook_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.ERROR, "interlace"),
        LocalRuntime(hooks=[Fails(), Hears()]).launch(pipeline()) as running,
    ):
        running.send("in", numbers(1))
        running.finish()
        assert read(running) == [2]
    assert HEARD[0] == ("start", "in", 0)
    assert "the task hook Fails failed" in caplog.text
