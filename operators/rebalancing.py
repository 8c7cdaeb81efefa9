"""A join with other numbers of elements, or another engine, and the same results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from operators.engines.shared.engine import Engine
from operators.query.errors import JoinError
from topology import check_count

if TYPE_CHECKING:
    from operators.join import StreamJoin


def rebalanced(join: StreamJoin, using: Engine | None, counts: Mapping[str, int]) -> StreamJoin:
    """Return the join with another engine, or with other numbers of elements by component, with _ for -."""
    if using is not None and not isinstance(using, Engine):
        raise JoinError(f"using must be an engine such as SPOJoin(elements=4), not {using!r}")
    engine = join.engine if using is None else using
    kinds = {type(choice.engine).__name__ for choice in join.engines}
    if using is None and len(kinds) > 1:
        shown = ", ".join(sorted(kinds))
        raise JoinError(f"the alternatives of this join have different engines ({shown}): give using=")
    settings: dict[str, Any] = {}
    for name, count in counts.items():
        component = next((each for each in engine.counted if name in (each, each.replace("-", "_"))), None)
        if component is None:
            known = ", ".join(f"'{each}'" for each in engine.counted)
            raise JoinError(
                f"'{name}' cannot be rebalanced in this join: {type(engine).__name__} has {known}; all other "
                f"components have one task. For another layout give using="
            )
        check_count(component, count)
        settings[engine.counted[component]] = count
    return replace(join, using=replace(engine, **settings))  # type: ignore[type-var]
