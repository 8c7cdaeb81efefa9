"""How a topology is, in sentences: is it well, how fast, what holds it back, what is late, what will run out?"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from interlace.watching.load import Load
from interlace.watching.look import Look
from topology import State

Health = Literal["well", "attention", "failed", "recovering", "starting", "stopped"]

HELD_BACK = 0.15
"""A component that waits for room downstream for this share of its time is held back."""

MOSTLY = 0.5
"""A component that is held back for more of its time than this is under back-pressure."""

BUSY = 0.75
"""A component with a task that is this busy has little room for more rows."""

FULL = 0.9
"""The share of a machine's processors that counts as all of them."""

TREND_SECONDS = 60.0
"""Growth over a shorter time is no trend."""

HORIZON_SECONDS = 24 * 3600.0
"""What would run out later than this is not worth a sentence."""

_STATES: dict[State, Health] = {
    State.STARTING: "starting",
    State.RECOVERING: "recovering",
    State.FAILED: "failed",
    State.STOPPED: "stopped",
}


@dataclass(frozen=True)
class Verdict:
    """The answers, each a sentence.

    component: the one that holds the others back, if one does.
    """

    health: Health
    summary: str
    speed: str
    bottleneck: str
    loss: str
    outlook: str
    component: str | None = None


def judge(look: Look, before: Look, components: Mapping[str, Load], earlier: Sequence[Look] = ()) -> Verdict:
    """Judge the last look; `earlier` are some from the last minutes, oldest first, which show what grows."""
    seconds = max(look.at - before.at, 1e-3)
    speed = (
        f"{quantity((look.rows_in - before.rows_in) / seconds)} rows/s in, "
        f"{quantity((look.rows_out - before.rows_out) / seconds)} rows/s out"
    )
    sentence, component, troubled = _bottleneck(look, components)
    loss, lost_now = _loss(look, before)
    outlook, short = _outlook(look, earlier)
    state = _STATES.get(look.status.state)
    if state is not None:
        why = look.status.error.strip().splitlines()[-1] if look.status.error.strip() else ""
        summary = {
            "starting": "It is starting.",
            "recovering": f"It is starting again after a failure: {why}",
            "failed": f"It has failed: {why}",
            "stopped": "It has been stopped.",
        }[state]
        return Verdict(state, summary, speed, sentence, loss, outlook, component)
    idle = "It takes no rows until it is activated." if not look.status.active else ""
    waits = f"{look.status.trouble}." if look.status.trouble else ""
    problems = [text for text in (waits, idle) if text]
    problems += [text for text, holds in ((sentence, troubled), (loss, lost_now), (outlook, short)) if holds]
    recovered = look.status.recoveries
    healed = f" It has recovered {times(recovered)}." if recovered else ""
    if problems:
        return Verdict("attention", f"It runs, but: {problems[0]}{healed}", speed, sentence, loss, outlook, component)
    return Verdict("well", f"It runs well.{healed}", speed, sentence, loss, outlook, component)


def _bottleneck(look: Look, components: Mapping[str, Load]) -> tuple[str, str | None, bool]:
    """What limits the speed; the component, if it is one; and whether that is a trouble."""
    waits = _waits_for_source(look)
    # Under back-pressure sources are behind because they are held back: then they are not to blame.
    if waits and not any(load.blocked > MOSTLY for load in components.values()):
        return waits, None, True
    if not components:
        return "Nothing has been measured yet.", None, False
    busy = max(load.busiest for load in components.values())
    sinks = {name: load for name in look.topology.sinks if (load := components.get(name))}
    unread = [name for name, load in sinks.items() if load.blocked > max(HELD_BACK, busy)]
    if unread:
        share = components[unread[0]].blocked
        return (
            f"Whoever reads '{unread[0]}' is the bottleneck: its queue was full for {share:.0%} of the time.",
            unread[0],
            True,
        )
    working = {name: load for name, load in components.items() if load.blocked <= HELD_BACK}
    busiest = max(working or components, key=lambda name: components[name].busiest)
    load = components[busiest]
    blocked = [name for name, each in components.items() if each.blocked > HELD_BACK]
    held = _behind(look, busiest, blocked)
    if held:
        worst = max(held, key=lambda name: components[name].blocked)
        return (
            f"'{busiest}' is the bottleneck: its busiest task works {load.busiest:.0%} of the time, and "
            f"'{worst}' waits for room {components[worst].blocked:.0%} of the time.",
            busiest,
            True,
        )
    cores = _cores(look)
    used = sum(each.busy * each.tasks for each in components.values())
    if len(look.status.workers) == 1 and used >= FULL * cores:
        return (
            f"The processors are the limit: tasks keep {used:.1f} of {cores} busy, '{busiest}' most of all.",
            busiest,
            False,
        )
    if load.busiest >= BUSY:
        return f"'{busiest}' is near its limit: its busiest task works {load.busiest:.0%} of the time.", busiest, False
    if not any(each.rows_in_rate or each.rows_out_rate for each in components.values()):
        return "No rows come in: nothing holds it back.", None, False
    return f"Nothing holds it back: '{busiest}', the busiest, works {load.busiest:.0%} of the time.", None, False


def _behind(look: Look, busiest: str, blocked: Sequence[str]) -> list[str]:
    """Those blocked components that feed the busiest one, directly or through others."""
    upstream, edge = set[str](), [busiest]
    while edge:
        fresh = [name for name in look.topology.producers(edge.pop()) if name not in upstream]
        upstream.update(fresh)
        edge += fresh
    return [name for name in blocked if name in upstream]


def _waits_for_source(look: Look) -> str:
    """For which source all rows wait, if they do."""
    if look.status.state is not State.RUNNING or not look.metrics.total("waiting_rows"):
        return ""
    waiting = quantity(look.metrics.total("waiting_rows"))
    if look.unknown_streams:
        stream = look.unknown_streams[0]
        return f"All wait for stream '{stream}': none of its sources has sent rows; {waiting} rows wait."
    behind = [source for source in look.sources if source["awaited"]]
    if not behind:
        return ""
    source = behind[0]
    place = f"source '{source['source']}' of stream '{source['stream']}'"
    if source["behind"] is None:
        return f"All wait for {place}, which has sent no rows yet; {waiting} rows wait."
    if not source["behind"]:
        return ""
    return f"All wait for {place}, which is {distance(source['behind'], source['unit'])} behind; {waiting} rows wait."


def _loss(look: Look, before: Look) -> tuple[str, bool]:
    late, rejected = int(look.metrics.total("late")), int(look.metrics.total("rejected"))
    if not late and not rejected:
        return "No row was late or rejected.", False
    parts = [f"{quantity(late)} late"] if late else []
    parts += [f"{quantity(rejected)} without an event time"] if rejected else []
    now = late + rejected > before.metrics.total("late") + before.metrics.total("rejected")
    share = (late + rejected) / look.rows_in if look.rows_in else 0.0
    return f"{' and '.join(parts)} rows take no part ({share:.2%} of all){', and more come' if now else ''}.", now


def _outlook(look: Look, earlier: Sequence[Look]) -> tuple[str, bool]:
    """What would run out first if things went on as they do: only what has grown all the time counts."""
    looks = [*earlier, look]
    found: list[tuple[float, str]] = []
    if looks[-1].at - looks[0].at >= TREND_SECONDS:
        for worker in look.status.workers:
            if worker.vitals is None:
                continue
            for what, free, used in (
                ("memory", worker.vitals.free_memory, [_memory(each, worker.name) for each in looks]),
                ("disk space", worker.vitals.free_disk, [_spilled(each) for each in looks]),
                ("state's disk space", worker.vitals.free_state, [_kept(each) for each in looks]),
            ):
                if free is None:
                    continue
                rates = [
                    (after - before) / max(later.at - sooner.at, 1e-3)
                    for (sooner, before), (later, after) in pairwise(zip(looks, used, strict=True))
                ]
                if min(rates) > 0 and free / min(rates) < HORIZON_SECONDS:
                    left = free / min(rates)
                    found.append((left, f"At this rate, the {what} of {worker.node} is full in {duration(left)}."))
    if found:
        left, text = min(found)
        return text, left < 3600.0
    on_disk = _spilled(look) + _kept(look)
    return f"Nothing runs out soon: windows hold {size(look.state_bytes)}, {size(on_disk)} are on disk.", False


def _memory(look: Look, worker: str) -> float:
    return next((each.vitals.memory for each in look.status.workers if each.name == worker and each.vitals), math.inf)


def _spilled(look: Look) -> float:
    return look.metrics.total("spilled_bytes")


def _kept(look: Look) -> float:
    return float(look.log_bytes + look.checkpoint_bytes)


def _cores(look: Look) -> int:
    return os.cpu_count() or 1


def quantity(number: float) -> str:
    """A number, short: 1.2 k, 3.4 M."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= scale * 0.9995:
            return f"{number / scale:.3g} {unit}"
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"


def size(count: float) -> str:
    """A number of bytes, short."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"


def duration(seconds: float) -> str:
    """A time span in the unit that fits."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def distance(behind: float, unit: str) -> str:
    """How far a source is behind."""
    return duration(behind) if unit == "s" else f"{quantity(behind)}{f' {unit}' if unit else ''}"


def times(count: int) -> str:
    """How often."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
