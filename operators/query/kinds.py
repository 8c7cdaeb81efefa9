"""Kinds of joins: which rows they emit besides, or instead of, the pairs (docs/semantics.md, Kinds)."""

from __future__ import annotations

from enum import StrEnum

from operators.query.errors import JoinError


class Kind(StrEnum):
    """A kind of join. It equals its name, which is what users write."""

    INNER = "inner"  # every pair
    LEFT = "left"  # every pair, and every unmatched row of the left, with nulls for the right
    RIGHT = "right"  # every pair, and every unmatched row of the right, with nulls for the left
    FULL = "full"  # every pair, and every unmatched row of either side
    SEMI = "semi"  # every left row that has a pair, once
    ANTI = "anti"  # every unmatched left row
    COUNT = "count"  # for every row the number of pairs that belong to it
    ASOF = "asof"  # every left row with the one right row that is nearest in event time, or with nulls
    ASOF_INNER = "asof inner"  # the same, without left rows that have none
    AGGREGATE = "aggregate"  # for every row of one side what its matches among earlier rows add up to
    CLOSING = "closing aggregate"  # the same over all its matches, when its window has closed

    @property
    def unmatched(self) -> tuple[bool, bool]:
        """Whether the join emits unmatched rows of the left side, and of the right side."""
        return self in (Kind.LEFT, Kind.FULL, Kind.ANTI), self in (Kind.RIGHT, Kind.FULL)

    @property
    def remembered(self) -> tuple[bool, bool]:
        """Whether the join must remember which rows have had a pair: for the left side, and for the right side."""
        if self is Kind.CLOSING:
            return True, True
        return self.unmatched[0] or self is Kind.SEMI, self.unmatched[1]

    @property
    def is_aggregate(self) -> bool:
        """Whether results are rows of one side with aggregates over their matches."""
        return self in (Kind.AGGREGATE, Kind.CLOSING)

    @property
    def counts_on_arrival(self) -> bool:
        """Whether the result of a row follows from its matches among earlier rows, and waits for all of these."""
        return self in (Kind.COUNT, Kind.AGGREGATE)

    def may_show_alone(self, side: int) -> bool:
        """Whether a row of a side may come out without a pair, unless `where` hides it."""
        return self is Kind.COUNT or self.is_aggregate or self.unmatched[side]

    @property
    def is_as_of(self) -> bool:
        """Whether the join chooses one right row for each left row."""
        return self in (Kind.ASOF, Kind.ASOF_INNER)

    @property
    def shows_right(self) -> bool:
        """Whether results include columns of the right side."""
        return self not in (Kind.SEMI, Kind.ANTI)


def kind_of(value: object) -> Kind:
    """The kind with this name; raises JoinError if there is none."""
    written = [kind for kind in Kind if not kind.is_aggregate]
    for kind in written:
        if value == kind:
            return kind
    remedy = ": leave kind out, and say aggregate={'n': count()}" if value in ("aggregate", "closing aggregate") else ""
    raise JoinError(f"kind must be one of {', '.join(repr(kind.value) for kind in written)}, not {value!r}{remedy}")
