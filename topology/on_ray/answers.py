"""The answers of many actors to one call, awaited as long as there is progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray

from topology.graph.errors import TaskError
from topology.graph.graph import TaskName


def gather(asked: Mapping[TaskName, Any], silence: float) -> dict[TaskName, Any]:
    """Wait for the answer of every task; raise a `TaskError` if a process dies, or if nobody answers for too long.

    silence: how many seconds may pass without any new answer. Each answer is progress and begins a new wait, so a busy
             machine may take as long as it needs to start many processes.
    """
    waiting = {reference: task for task, reference in asked.items()}
    answers = {}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=silence)
        if not ready:
            missing = list(waiting.values())
            raise TaskError(
                *missing[0],
                f"no process answered for {silence:.0f} seconds; {len(missing)} of {len(asked)} are missing: "
                + ", ".join(f"{component}[{number}]" for component, number in missing),
            )
        for reference in ready:
            task = waiting.pop(reference)
            try:
                answers[task] = ray.get(reference)
            except ray.exceptions.RayError as error:
                raise TaskError(*task, reason(*task, error)) from None
    return {task: answers[task] for task in asked}


def reason(component: str, number: int, error: Exception) -> str:
    """Why Ray got no answer from a process; the last line is the one that the user reads first."""
    died = isinstance(error, ray.exceptions.RayActorError) and "creation task" not in str(error)
    return f"{error}\nthe process of component '{component}', task {number}, died" if died else str(error)
