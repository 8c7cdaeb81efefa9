"""The index that an engine's cores use: named by the user, or chosen from the query and the first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from indexes import Choice, Interval, Keys, Observed, Query, WindowIndex, choose, make_index
from operators.engines.shared.configured_index import Argument, ConfiguredIndex
from operators.engines.shared.engine import ElementPlan
from operators.engines.shared.selectivity import SAMPLED_KEYS, SAMPLED_PROBES, shares_of
from operators.engines.shared.setting_checks import AUTO
from operators.protocol.sides import LEFT, RIGHT
from operators.query.predicate import Dimension

ROWS_OF_A_TIME_WINDOW = 1 << 17
"""Assumed for windows whose number of rows is unknown: indexes adapt to more, they only start small."""


Asked = Literal["point", "band", "range", "nothing"]
"""What a dimension asks for: one value, an interval with two ends, one with an end at least, or nothing that helps."""


@dataclass(frozen=True)
class IndexSetting:
    """How an engine's cores make their indexes.

    index:    an index of the catalogue by its name or with arguments of its own, or "auto".
    asked:    what each dimension asks for.
    rows:     about how many rows of each side's window one core stores.
    batch:    about how many rows come at once.
    counting: only the number of matches is wanted.
    threads:  threads that insert into and probe one index.
    """

    index: str | ConfiguredIndex
    asked: tuple[Asked, ...]
    rows: tuple[int, int]
    batch: int
    counting: bool = False
    threads: int = 1

    @classmethod
    def of(cls, index: str | ConfiguredIndex, plan: ElementPlan, cores: int, threads: int = 1) -> IndexSetting:
        """The setting of an index for each of so many cores; the rest follows from the join."""
        sizes = [window.rows or ROWS_OF_A_TIME_WINDOW for window in plan.windows]
        left, right = (max(1, -(-size // cores)) for size in sizes)
        asked = tuple(asked_of(dimension) for dimension in plan.predicate.dimensions)
        return cls(index, asked, (left, right), plan.batch, plan.counts, threads)

    def choice(self, side: int, observed: Observed | None = None) -> Choice:
        """The index for one side's rows, with the reason for it."""
        if isinstance(self.index, ConfiguredIndex):
            return Choice(self.index.name, f"as asked for, {self.index}")
        if self.index != AUTO:
            return Choice(self.index, "as asked for")
        return choose(
            Query(
                equalities=self.asked.count("point"),
                ranges=self.asked.count("band") + self.asked.count("range"),
                negations=self.asked.count("nothing"),
                bands=self.asked.count("band"),
                window=self.rows[side],
                batch=self.batch,
                counting=self.counting,
                threads=self.threads,
            ),
            observed,
        )

    @property
    def arguments(self) -> Mapping[str, Argument]:
        """Those that the user gives the index."""
        return self.index.arguments if isinstance(self.index, ConfiguredIndex) else {}

    def make(self, side: int, keys: Sequence[Keys], probes: Sequence[Interval] | None) -> WindowIndex:
        """An empty index for one side, chosen with the first keys to store and the first intervals to probe with."""
        observed = None
        if probes is not None and len(keys[0]) and len(probes[0]):
            sample = [_first(column, SAMPLED_KEYS) for column in keys]
            observed = Observed.of(sample, [one.rows(slice(0, SAMPLED_PROBES)) for one in probes], self.rows[side])
        return make_index(
            self.choice(side, observed).index,
            window=self.rows[side],
            batch=self.batch,
            dimensions=len(self.asked),
            key=self.key(keys, probes),
            arguments=self.arguments,
        )

    def key(self, keys: Sequence[Keys], probes: Sequence[Interval] | None) -> int:
        """The dimension that leaves the fewest rows; without a sample, the first one that is the most restrictive."""
        order = sorted(range(len(self.asked)), key=lambda d: get_args(Asked).index(self.asked[d]))
        if probes is None or not len(keys[0]) or not len(probes[0]):
            return order[0]
        shares = shares_of(keys, probes)
        return min(order, key=lambda d: shares[d])


def index_note(setting: IndexSetting | None) -> str:
    """Which index an element stores its rows in, and why, for the plan."""
    if setting is None:
        return "nested loop"
    return " | ".join(dict.fromkeys(str(setting.choice(side)) for side in (LEFT, RIGHT)))


def asked_of(dimension: Dimension) -> Asked:
    """What a dimension asks for. One whose key is the same for all rows helps no more than "!=" does."""
    if dimension.negated or dimension.made == "constant":
        return "nothing"
    if dimension.is_point:
        return "point"
    return "band" if dimension.is_bounded or dimension.made == "ordinal" else "range"


def _first(column: Keys, rows: int) -> Keys:
    return Keys(column.values[:rows], None if column.valid is None else column.valid[:rows])
