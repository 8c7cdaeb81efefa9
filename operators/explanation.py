"""Explains what a join will do and why, and after a run what it did: as text, or as a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

import pyarrow as pa

from operators.join_topology import AS_OF, join_topology
from operators.protocol.sides import LEFT, RIGHT, SIDES
from operators.query.as_of import AsOf
from operators.query.condition import conjuncts
from operators.query.errors import PredicateError
from operators.query.kinds import Kind
from operators.query.predicate import ComparisonReader, Predicate
from operators.resolved_join import ResolvedJoin
from operators.routing.pair_check import PairCheck
from operators.routing.payload_plan import PayloadPlan
from operators.state_estimates import row_bytes, rows_in_words
from topology import Metrics, Plan, TaskMetrics


@dataclass(frozen=True)
class Explanation:
    """Sections of lines, and the graph. Print it, or let a notebook show it."""

    title: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    plan: Plan

    def __str__(self) -> str:
        lines = [self.title]
        for name, content in self.sections:
            lines += [f"  {name if number == 0 else '':<11}{line}" for number, line in enumerate(content)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{escape(name)}</th>"
            f"<td style='text-align:left'>{'<br>'.join(map(escape, content))}</td></tr>"
            for name, content in self.sections
        )
        return f"<b>{escape(self.title)}</b><table>{rows}</table>{self.plan.svg()}"


def explain(
    join: ResolvedJoin, schemas: Mapping[str, pa.Schema] | None = None, observed: Metrics | None = None
) -> Explanation:
    """Explain a join.

    schemas:  the schemas of the streams, where known; the estimate of the state then includes the payload.
    observed: the metrics of a run.
    """
    plan = join_topology(join).plan()
    sections: list[tuple[str, tuple[str, ...]]] = [("condition", (str(join.condition.written),))]
    if join.as_of is not None:
        sections.append(("choice", tuple(_choice(join, join.as_of))))
    for number, branch in enumerate(join.condition.branches if join.as_of is None else ()):
        name = "search" if len(join.condition.branches) == 1 else f"search {number + 1}"
        sections.append((name, tuple(_search(branch, join.roles))))
        sections.append(("engine" if not number else "", (str(join.engines[number]),)))
    if join.as_of is None:
        windows = [f"{role}: {window!r}" for role, window in zip(join.roles, join.windows, strict=True)]
        sections += [("windows", tuple(windows)), ("state", tuple(_state(join, schemas or {})))]
    if join.kind.is_aggregate:
        sections.append(("aggregates", tuple(_aggregates(join))))
    sections.append(("elements", tuple(_elements(plan))))
    if observed is not None:
        sections.append(("observed", tuple(_observed(join, observed))))
    kind = "" if join.kind is Kind.INNER else "aggregate " if join.kind.is_aggregate else f"{join.kind} "
    title = f"{kind}join of {join.roles[LEFT]} and {join.roles[RIGHT]}, order: {join.ordering}"
    return Explanation(title, tuple(sections), plan)


def _aggregates(join: ResolvedJoin) -> Iterator[str]:
    """Say when each row comes out, and what it shows of its matches."""
    own = join.roles[join.selection.side]
    place = "when it arrives" if join.kind is Kind.AGGREGATE else "when its interval has closed"
    listed = "counted" if join.selection.only_counts else "listed by the elements, then aggregated"
    yield f"each row of {own}, {place}; its matches are {listed}"
    for each in join.selection.aggregated:
        yield repr(each.item)


def _choice(join: ResolvedJoin, settings: AsOf) -> Iterator[str]:
    """Say which right row each left row gets, and what is kept for it."""
    left, right = join.roles
    named = zip(join.roles, join.streams, strict=True)
    times = " and ".join(f"{role}.{join.event_times[stream]}" for role, stream in named)
    keys = " and ".join(f"{left}.{one} = {right}.{other}" for one, other in zip(*_keys(join), strict=True))
    yield f"each row of {left} with one row of {right}: {settings}, by {times}" + (f", where {keys}" if keys else "")
    last = f", and the last row of {right}" + (" of each key" if keys else "")
    yield f"state: rows of {left} that wait{'' if settings.direction == 'forward' else last}"


def _keys(join: ResolvedJoin) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return join.condition.equal_columns(LEFT), join.condition.equal_columns(RIGHT)


def _search(branch: Predicate, roles: tuple[str, str]) -> Iterator[str]:
    """List what is searched by keys, what is tested per row and what per pair, each with its reason."""
    searched = [dimension for dimension in branch.dimensions if not dimension.made]
    if not searched:
        yield "every live row: no comparison between the two streams narrows the search"
    for dimension in searched:
        how = "finds one value" if dimension.is_point else "finds a range"
        if dimension.negated:
            how = "excludes little: tested on what the other comparisons find"
        yield f"{dimension}: by keys, {how}"
    if any(dimension.made == "ordinal" for dimension in branch.dimensions):
        yield "the last rows of each key: by their number within the key, as one more key"
    if len(searched) > 2:
        yield "the index order is decided with the first rows, by the comparison that leaves the fewest"
    for role, condition in zip(roles, branch.filters, strict=True):
        if condition is not None:
            yield f"{condition!r}: once per row of {role}, before it is stored or probes"
    reader = ComparisonReader(*roles)
    for part in [] if branch.residual is None else conjuncts(branch.residual):
        try:
            reader.read(part)
            reason = "on the pairs found"
        except PredicateError as error:
            reason = f"on the pairs found, since {error}"
        yield f"{part!r}: {reason}"
    for expression in branch.excluded:
        yield f"without the pairs already found: NOT ({expression!r})"


def _state(join: ResolvedJoin, schemas: Mapping[str, pa.Schema]) -> Iterator[str]:
    checks = tuple(PairCheck(branch) for branch in join.condition.branches)
    payload = PayloadPlan(join.selection, join.selection.kind, checks)
    total: int | None = 0
    for side in (LEFT, RIGHT):
        schema = schemas.get(join.streams[side])
        kept = None if schema is None else pa.schema([schema.field(name) for name in payload.columns(side, schema)])
        width = row_bytes(join.comparisons, kept)
        shown = f"about {width} bytes a row" + (", and the columns that results show" if kept is None else "")
        rows = join.windows[side].rows
        total = None if rows is None or total is None or kept is None else total + rows * width
        yield f"{join.roles[side]}: {rows_in_words(join.windows[side])}, {shown}"
    if total is not None:
        yield f"together about {_bytes(total)}"


def _elements(plan: Plan) -> Iterator[str]:
    """List each component with its tasks, its inputs and its settings."""
    for node in plan.nodes:
        feeders = list(dict.fromkeys(edge.producer for edge in plan.edges if edge.consumer == node.name))
        tasks = f" x{node.parallelism}" if node.parallelism > 1 else ""
        fed = f" <- {', '.join(feeders)}" if feeders else ""
        note = f"  ({node.component.note})" if node.component.note else ""
        yield f"{node.name}{tasks}{fed}{note}"


def _observed(join: ResolvedJoin, metrics: Metrics) -> Iterator[str]:
    router, collector = ("router", join.engines[0].engine.collector) if join.as_of is None else (AS_OF, AS_OF)
    for side, role in enumerate(join.roles):
        came = metrics.total(f"{SIDES[side]}_rows", router)
        yield f"{role}: {came:,.0f} rows in, {metrics.total(f'{SIDES[side]}_live', router):,.0f} live"
    results, checked = metrics.total("results", collector), metrics.total("checked_pairs", collector)
    pairs = f" of {checked:,.0f} pairs tested" if checked else ""
    yield f"{results:,.0f} results{pairs}"
    late, rejected = metrics.total("late"), metrics.total("rejected")
    if late or rejected:
        yield f"{late:,.0f} rows late, {rejected:,.0f} without an event time"
    for task in metrics.tasks:
        held = {name: value for name, value in task.own.items() if name.endswith("_bytes") and value}
        chosen = [name.partition(":")[2] for name in task.own if name.startswith("index:")]
        about = [f"{_bytes(value)} {name.removesuffix('_bytes').replace('_', ' ')}" for name, value in held.items()]
        about += [f"index {name}" for name in chosen]
        if about or task.busy_seconds >= 0.05:
            yield f"{task.component}[{task.task}]: {', '.join([f'{task.busy_seconds:.2f} s busy', *about])}"
    for task in metrics.tasks:
        if "division" in task.details:
            yield from _division(task)
    for task in metrics.tasks:
        yield from _chosen_now(join, task)


def _division(task: TaskMetrics) -> Iterator[str]:
    """How keys are divided among elements, and what that costs: as expected from the newest rows, and as seen."""
    division = task.details["division"]
    expected, observed = division["expected"], division["observed"]
    of = f" of {division['of']}" if division["of"] else ""
    held = task.own["maps_in_use"]
    maps = "" if held == 1 else f"; rows are stored by {held:.0f} divisions"
    yield f"{task.component}: by {division['by']}{of}, divided anew {task.own['maps']:.0f} times{maps}"
    expects = f"{expected['sent']:.2f} expected by the newest rows"
    yield f"{task.component}: {observed['sent']:.2f} rows sent for each row, at least 1; {expects}"
    for name, loads in (("rows sent to each element", observed["loads"]), ("work expected of each", expected["loads"])):
        busiest = max(loads) * len(loads) / (sum(loads) or 1)
        shown = ", ".join(f"{load:.1%}" for load in loads)
        yield f"{task.component}, {name}: {shown}; the busiest {busiest:.2f} times the mean"


def _chosen_now(join: ResolvedJoin, task: TaskMetrics) -> Iterator[str]:
    """How selective each comparison is by the newest rows of a task, and what would be chosen by them."""
    _, _, suffix = task.component.partition(".")
    branch = join.condition.branches[int(suffix) - 1 if suffix.isdecimal() else 0]
    named = [str(dimension) for dimension in branch.dimensions]
    for side, role in enumerate(join.roles):
        shares = task.details.get("selectivity", {}).get(SIDES[side])
        if shares is None or len(shares) != len(named):
            continue
        leaves = ", ".join(f"{name} leaves {share:.2%}" for name, share in zip(named, shares, strict=True))
        choice = ""
        if index := task.details.get("index", {}).get(SIDES[side]):
            as_now = "as it would be chosen now" if index["has"] == index["now"] else f"now it would be {index['now']}"
            choice = f"; index {index['has']}, {as_now}: {index['reason']}"
        elif pair := task.details.get("indexed", {}).get(SIDES[side]):
            has, now = (" and ".join(dict.fromkeys(named[one] for one in pair[key])) for key in ("has", "now"))
            choice = f"; indexed by {has}, {'as it would be now' if has == now else f'now it would be {now}'}"
        yield f"{task.component}[{task.task}], the newest rows of {role}: {leaves}{choice}"


def _bytes(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
