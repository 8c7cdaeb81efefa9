"""Explains what a join of several streams will do and why, and after a run in which order it probed."""

from __future__ import annotations

from collections.abc import Iterator

from operators.explanation import Explanation
from operators.multi_topology import ELEMENT, multi_topology
from operators.resolved_multi_join import ResolvedMultiJoin
from operators.state_estimates import rows_in_words
from topology import Metrics


def explain_several(join: ResolvedMultiJoin, observed: Metrics | None = None) -> Explanation:
    """Explain a join; `observed`: the metrics of a run."""
    windows = zip(join.roles, join.windows, strict=True)
    sections: list[tuple[str, tuple[str, ...]]] = [
        ("condition", (str(join.condition.written),)),
        ("search", tuple(_search(join))),
        ("windows", tuple(f"{role}: {window!r}, {rows_in_words(window)}" for role, window in windows)),
    ]
    if observed is not None:
        sections += [("order", tuple(_orders(observed))), ("observed", tuple(_observed(join, observed)))]
    return Explanation(f"join of {', '.join(join.roles)}", tuple(sections), multi_topology(join).plan())


def _search(join: ResolvedMultiJoin) -> Iterator[str]:
    """List what is searched by keys, what is tested per row and what per combination."""
    condition, names = join.condition, join.roles
    for link in condition.links:
        between = " and ".join(names[role] for role in link.roles)
        how = "excludes little" if link.dimension.negated else "one value" if link.dimension.is_point else "a range"
        yield f"{link.dimension}: by keys of {between}, {how}"
    for role, each in zip(names, condition.filters, strict=True):
        if each is not None:
            yield f"{each!r}: once per row of {role}, before it is stored or probes"
    for residual in condition.residuals:
        of = ", ".join(names[role] for role in sorted(residual.roles))
        yield f"{residual.expression!r}: on combinations of {of or 'any rows'}"
    if not condition.links:
        yield "every live row: no comparison between two streams narrows the search"


def _orders(metrics: Metrics) -> Iterator[str]:
    for task in metrics.of(ELEMENT):
        for latest, stages in task.details.get("orders", {}).items():
            shown = [f"{each['stream']} (about {each['finds']:,g} rows{_by(each['index'])})" for each in stages]
            yield f"a row of {latest} probes {', then '.join(shown)}"


def _by(index: str) -> str:
    return f" by {index}" if index else ""


def _observed(join: ResolvedMultiJoin, metrics: Metrics) -> Iterator[str]:
    live = [f"{role} {metrics.total(f'{role}_live', ELEMENT):,.0f}" for role in join.roles]
    yield f"{metrics.total('results', ELEMENT):,.0f} results; live rows: {', '.join(live)}"
    late, rejected = metrics.total("late"), metrics.total("rejected")
    if late or rejected:
        yield f"{late:,.0f} rows late, {rejected:,.0f} without an event time"
    for task in metrics.of(ELEMENT):
        yield f"{ELEMENT}[{task.task}]: {task.busy_seconds:.2f} s busy"
