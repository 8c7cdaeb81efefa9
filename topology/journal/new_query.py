"""Another query goes on from the rows that a journal was kept for.

The rows that were sent and the gate's decisions do not depend on the query. So a query with another condition, window,
kind or selection can repeat them: its windows are full when it begins. Its results begin behind the last step that was
decided, with number 0: a new series. What it may not change is how rows come to be in one order, and it cannot see what
the journal no longer holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from topology.graph.components import Facts
from topology.graph.errors import InputError, TopologyError
from topology.journal.events import QueryChanged
from topology.journal.image import ChooseStart, Image, Start


@dataclass(frozen=True)
class NewQuery:
    """A query that may take the place of the one that a journal was kept for.

    check: raises an `InputError` if it cannot read rows of these schemas, by stream.
    adopt: describes a place in the order, which the other query has reached, as this one does; see `Component.adopt`.
    """

    check: Callable[[Mapping[str, pa.Schema]], None]
    adopt: Callable[[Facts, Mapping[str, pa.Schema]], Facts]


def changed(
    image: Image, identity: str, intake: str, oldest: int, query: NewQuery, choose_start: ChooseStart
) -> QueryChanged:
    """Return the event that makes another query the one that a journal is kept for; raises why it cannot be.

    oldest: the first segment that is kept.
    """
    if not intake:
        raise TopologyError("new_query=True is for joins: what tasks of other topologies know is in their snapshots")
    if image.intake != intake:
        raise TopologyError(
            f"a new query takes its rows in the same order: it has the same streams, event times and bounds on "
            f"disorder. The state was kept for: {image.intake}. This query has: {intake}"
        )
    schemas = {name: stream.schema for name, stream in image.streams.items() if stream.schema is not None}
    starts = [start for start in image.starts if min(start.segment, start.inputs) >= oldest]
    try:
        query.check(schemas)
        adopted = [replace(start, reached=_adopted(query, start.reached, schemas)) for start in starts]
        reached = _adopted(query, image.reached, schemas)
    except InputError as error:
        raise TopologyError(
            f"the rows that are kept do not fit the new query: {error}. All columns that are sent are kept; retain= "
            f"says which a later query may need"
        ) from error
    _check_enough(adopted, reached, choose_start)
    return QueryChanged(identity, reached, [[each.segment, each.seq, each.reached, each.inputs] for each in adopted])


def _adopted(query: NewQuery, reached: Facts, schemas: Mapping[str, pa.Schema]) -> Facts:
    return query.adopt(reached, schemas) if reached else reached


def _check_enough(starts: list[Start], reached: Facts, choose_start: ChooseStart) -> None:
    """Refuse windows that the journal cannot fill. One that begins with the first row can fill any."""
    if starts[0].seq < 0 or not reached:
        return
    nowhere: Facts = {}  # what suffices for nothing
    if choose_start([nowhere, *(start.reached for start in starts)], reached) == 0:
        raise TopologyError(
            "the windows of the new query need rows that the journal no longer holds: it keeps what the windows of the "
            "query before needed. Make the windows smaller, or begin with another state"
        )
