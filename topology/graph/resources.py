"""What a task of a component asks of the node it runs on: processors, memory, labels.

The embedded runtime has one node and reserves nothing. On a cluster the wishes decide which node may run a task, and
Ray reserves what is asked for (see the room placement).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real

from topology.graph.errors import TopologyError

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:{_NAME}(?:\.{_NAME})*/)?{_NAME}")
_SELECTOR = re.compile(rf"!?{_NAME}|!?in\({_NAME}(?:, ?{_NAME})*\)")
LEAST_CPUS = 0.01


@dataclass(frozen=True)
class Resources:
    """The wishes of each task of a component; what is None or empty is left open.

    cpus:   processors to reserve; a fraction shares one.
    memory: bytes to reserve.
    labels: labels that the node must have, as Ray's label selectors: `{"zone": "a"}`, `"!a"`, `"in(a, b)"`, `"!in(a)"`.
    """

    cpus: float | None = None
    memory: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        cpus = [] if self.cpus is None else [f"{self.cpus:g} CPUs" if self.cpus != 1 else "1 CPU"]
        memory = [] if self.memory is None else [f"{bytes_text(self.memory)} of memory"]
        labels = [labels_text(self.labels)] if self.labels else []
        return ", ".join([*cpus, *memory, *labels])


def checked_resources(
    component: str, cpus: float | None, memory: int | None, labels: Mapping[str, str] | None
) -> Resources:
    """Return the wishes of a component, or raise a `TopologyError` that names it."""
    whose = f"component '{component}'"
    if cpus is not None and not (_is_number(cpus, Real) and math.isfinite(cpus) and cpus >= LEAST_CPUS):
        raise TopologyError(f"{whose}: cpus must be a number of {LEAST_CPUS} or more, not {cpus!r}")
    if memory is not None and not (_is_number(memory, Integral) and memory >= 1):
        raise TopologyError(f"{whose}: memory must be a whole number of bytes, 1 or more, not {memory!r}")
    if labels is not None and not isinstance(labels, Mapping):
        raise TopologyError(f'{whose}: labels must be a mapping such as {{"zone": "a"}}, not {labels!r}')
    for key, value in (labels or {}).items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise TopologyError(
                f"{whose}: {key!r} cannot be the name of a node label: use letters, digits, - _ . and /"
            )
        if not isinstance(value, str) or not _SELECTOR.fullmatch(value):
            raise TopologyError(
                f"{whose}: label '{key}' cannot be {value!r}: write a value, '!value', 'in(a, b)' or '!in(a, b)'"
            )
    return Resources(
        None if cpus is None else float(cpus),
        None if memory is None else int(memory),
        dict(sorted((labels or {}).items())),
    )


def labels_match(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a node with `labels` satisfies the selectors in `wanted`, by Ray's rules."""
    return all(_matches(selector, labels.get(key)) for key, selector in wanted.items())


def bytes_text(count: int) -> str:
    """Return a number of bytes in the largest unit that keeps it above one."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as `key=value`, in order of their keys."""
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _matches(selector: str, value: str | None) -> bool:
    """Evaluate one selector; a node without the label satisfies only a negated one."""
    negated = selector.startswith("!")
    text = selector.removeprefix("!")
    listed = text[3:-1].split(",") if text.startswith("in(") else [text]
    return (value in {name.strip() for name in listed}) != negated


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
