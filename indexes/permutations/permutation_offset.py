"""PO-Join: an immutable block of rows, built for fast searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from indexes.kernels.columns import EVERYWHERE, Interval, Live, Matches, frozen
from indexes.permutations.bit_kernels import (
    NONE_LIVE,
    SOME_LIVE,
    count_in_scan,
    count_live,
    count_scanned,
    live_rows,
    survey,
)
from indexes.permutations.costs import COPY_COST, LOOK_COST, SCAN_COST, Strategy, cheapest_without_tree, reach
from indexes.permutations.pair_trees import PairTrees
from indexes.permutations.permutation import NOTHING, Envelope, Permutation, ranks_of
from indexes.permutations.permutation_search import (
    NO_DIMENSIONS,
    Candidates,
    Listing,
    Ranges,
    RowFilter,
    listing,
    scan,
    walk,
    walk_sequence,
    written,
)
from indexes.permutations.sorted_run import SortedRun

SHORT_SCAN = 48
"""Up to this mean width a scan is chosen at once: comparing with other strategies would cost as much."""

SAMPLES = 16

ROWS = -1
"""Instead of a dimension: the rows of the block in order."""

COUNTED_AT_ONCE = 1 << 22
"""Most matches enumerated at a time in order to count them."""

ALIKE = 4
"""An existing permutation is used if its two widths' product is at most so many times the least possible product."""

RETRY_SHORT = 64
"""Batches that skip `short_search` after it gave up."""


class PermutationOffsetJoin:
    """The rows [first_position, first_position + rows) of one side in an immutable index.

    SPO-Join's PO-Join structure (sections 3.3 and 3.4).

    Where we depart: the offset arrays, which place the other stream's keys among these, are not stored. Probe batches
    are not known in advance, and a batched search for a bound costs 30 ns. A range of either dimension first narrows
    the other through an `Envelope`. The rest is mostly so short that scanning the permutation beats any bit array;
    where it is not, the bit array serves a whole batch in one walk instead of being filled for each tuple. Dense
    answers come from a `MergeSortTree` at the cost of copying them, and counts from a `WaveletTree` without
    enumeration; both are built when they pay (`PairTrees`). There may be any number of dimensions: the two narrowest
    are matched through their permutation, the others filter by rank.

    Only caches change, which are filled on first use. Any number of threads may probe at once; two may fill the same
    cache, with the same content.
    """

    def __init__(self, first_position: int, runs: Sequence[SortedRun], *, trees: bool = True) -> None:
        """`trees=False` uses only the paper's scans and walks.

        Cost: O(1); permutations are built on first use, O(n) each, and trees when they pay.
        """
        assert runs
        assert first_position >= 0
        assert all(run.rows == runs[0].rows for run in runs), "runs must be of one block"
        self.first_position = first_position
        self.runs = tuple(runs)
        self.rows = runs[0].rows
        self._ranks: np.ndarray | None = None
        self._permutations: dict[tuple[int, int], Permutation] = {}
        self._give_up_short = 0
        self._short_fields: dict[tuple[bool, bool], tuple[int, ...]] = {}
        self._short_arrays: tuple[np.ndarray, ...] = ()
        self._envelopes: dict[tuple[int, int], tuple[bool, bool, Envelope]] = {}
        self._grows_trees = trees
        self._trees: dict[tuple[int, int], PairTrees] = {}

    @property
    def end_position(self) -> int:
        return self.first_position + self.rows

    @property
    def nbytes(self) -> int:
        """Bytes held, caches included. Cost: O(dimensions)."""
        return (
            sum(run.nbytes for run in self.runs)
            + (0 if self._ranks is None else self._ranks.nbytes)
            + sum(permutation.nbytes for permutation in list(self._permutations.values()))
            + sum(entry[2].nbytes for entry in list(self._envelopes.values()))
            + sum(trees.nbytes for trees in list(self._trees.values()))
        )

    def probe(self, intervals: Sequence[Interval], live: Live, *, ordered: bool = True) -> Matches:
        """The matches of a probe batch. Cost: as `match`, and O(log n) per probe row and bound."""
        matches = self.probe_within(EVERYWHERE, intervals, live, ordered=ordered)
        assert matches is not None
        return matches

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """As `probe`, but None if there are more than `limit` matches: the caller then splits the batch."""
        answer = self.answer_within(limit, intervals, live, ordered=ordered)
        return None if answer is None else written([answer])

    def answer_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | Listing | None:
        """As `probe_within`, but matches from a tree are not written yet; `written` does that."""
        if not len(live):
            return Matches.empty(0)
        negated = [interval.negated for interval in intervals]
        least_first, _, _, greatest_end = live.extent
        if least_first >= self.end_position or greatest_end <= self.first_position:
            return Matches.empty(len(live))
        low, high, liveness = self._live_rows(live)
        if liveness == NONE_LIVE:
            return Matches.empty(len(live))
        windowed = liveness == SOME_LIVE
        return self._match(self.ranges(intervals), negated, windowed, low, high, ordered, limit, None)

    def count(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """The number of matches of each probe row.

        Cost: O(log n) per probe row for one or two dimensions, none of them negated, however many rows match. With two
        dimensions, a live range that cuts the block also costs reading the live rows, the dead rows or the narrowed
        range, whichever is least. Otherwise as `probe`, for a part of the batch at a time.
        """
        counts = np.zeros(len(live), np.int64)
        if not len(live):
            return counts
        low, high, liveness = self._live_rows(live)
        if liveness == NONE_LIVE:
            return counts
        windowed = liveness == SOME_LIVE
        if len(intervals) > 2 or any(one.negated for one in intervals) or not self._grows_trees:
            return self._count_by_probing(intervals, live)
        sides = self.ranges(intervals)
        if len(intervals) == 2:
            return self._count_pair(sides, windowed, low, high)
        if windowed:
            return self._count_rows_within(sides[0], low, high)
        np.subtract(sides[0][1], sides[0][0], out=counts)
        return counts

    @property
    def suits_short(self) -> bool:
        """Whether to try `short_search`; after it gave up, the next batches skip it."""
        if self._give_up_short:
            self._give_up_short -= 1
        return not self._give_up_short

    def give_up_short(self) -> None:
        """Skip `short_search` for the next batches: a block's data does not change."""
        self._give_up_short = RETRY_SHORT

    def short_fields(self, bounds: Interval, partner_bounds: Interval, live: Live) -> tuple[int, ...]:
        """The block's row in the table of `short_search`, for these probe rows. Cost: O(1) once the arrays exist."""
        keys = self.runs[0].keys
        greatest_low, least_high = bounds.inner
        least, greatest = self.runs[0].ends
        since, until = greatest_low > least, least_high < greatest
        known = self._short_fields.get((until, since))
        if known is None:
            assert bounds.low.dtype == keys.dtype, "the kernel reads keys in the type of the bounds"
            partner_type = self.runs[1].keys.dtype
            assert partner_bounds.low.dtype == partner_type, "the kernel reads keys in the type of the bounds"
            arrays = self._envelope(0, 1, until, since).arrays
            lowest_until, highest_until, lowest_from, highest_from = (a.ctypes.data if len(a) else 0 for a in arrays)
            if not until:
                lowest_until = highest_until = 0
            if not since:
                lowest_from = highest_from = 0
            partner = self.runs[1]
            ranks = self._permutation(1, 0).partner
            known = (
                keys.ctypes.data, len(keys), lowest_until, highest_until, lowest_from, highest_from,
                partner.keys.ctypes.data, len(partner), partner.order.ctypes.data, ranks.ctypes.data,
                self.rows, self.first_position,
            )  # fmt: skip
            # Keep the arrays alive with their addresses: another thread may replace a cache meanwhile.
            self._short_arrays += (*arrays, ranks)
            self._short_fields[until, since] = known
        _, greatest_first, least_end, _ = live.extent
        return (*known, int(greatest_first > self.first_position or least_end < self.end_position))

    def ranges(self, intervals: Sequence[Interval]) -> list[Ranges]:
        """Each dimension's rank ranges. Cost: O(probes * dimensions * log n)."""
        assert len(intervals) == len(self.runs), "one interval per dimension"
        return [run.ranges(one) for run, one in zip(self.runs, intervals, strict=True)]

    def match(
        self,
        ranges: Sequence[Ranges],
        negated: Sequence[bool],
        live: Live,
        *,
        ordered: bool = True,
        limit: int = EVERYWHERE,
        _strategy: Strategy | None = None,
    ) -> Matches | None:
        """The live rows whose ranks lie in the ranges [a, b); if negated, rows that have a rank outside.

        Positions ascend within each probe row if `ordered`. None if there are more than `limit` matches; memory stays
        within a small multiple of `limit` and of the block.
        Cost: O(probes + matches + the cheaper of: the widths of the narrowed ranges; O(n) per batch and a sixty-fourth
        of the widths).
        """
        assert len(ranges) == len(negated) == len(self.runs), "one range per dimension"
        low, high, liveness = self._live_rows(live)
        if liveness == NONE_LIVE:
            return Matches.empty(len(live))
        sides = [(frozen(a, np.int32), frozen(b, np.int32)) for a, b in ranges]
        answer = self._match(sides, negated, liveness == SOME_LIVE, low, high, ordered, limit, _strategy)
        return None if answer is None else written([answer])

    def _live_rows(self, live: Live) -> tuple[np.ndarray, np.ndarray, int]:
        """Each probe row's live rows [low, high) of this block, and whether they are all, some or none."""
        low = np.empty(len(live), np.int32)
        high = np.empty(len(live), np.int32)
        return low, high, live_rows(live.start, live.end, self.first_position, self.rows, low, high)

    def _match(
        self,
        sides: list[Ranges],
        negated: Sequence[bool],
        windowed: bool,
        low: np.ndarray,
        high: np.ndarray,
        ordered: bool,
        limit: int,
        forced: Strategy | None,
    ) -> Matches | Listing | None:
        positive = [d for d, inverse in enumerate(negated) if not inverse]
        if len(positive) > 2:
            widths = {d: survey(*sides[d])[0] for d in positive}
            positive.sort(key=lambda d: widths[d])
            positive = self._permuted_first(positive, widths)
        indexed = positive[:2]
        others = [d for d in range(len(self.runs)) if d not in indexed]
        keep = RowFilter(ordered, windowed, low, high, *self._other_dimensions(others, sides, negated))
        if len(indexed) == 2:
            return self._match_pair(indexed[0], indexed[1], sides, keep, limit, forced)
        return self._match_single(indexed, sides, keep, limit)

    def _permuted_first(self, positive: list[int], widths: Mapping[int, int]) -> list[int]:
        """Two dimensions that already have a permutation, if they are about as narrow as the two narrowest."""
        least = float(widths[positive[0]]) * widths[positive[1]]
        for first, second in list(self._permutations):
            if first in widths and second in widths and float(widths[first]) * widths[second] <= ALIKE * least:
                return [first, second]
        return positive

    def _match_single(self, indexed: list[int], sides: list[Ranges], keep: RowFilter, limit: int) -> Matches | None:
        """Match one dimension's range, or every row if all dimensions are negated, then filter."""
        if indexed:
            run = self.runs[indexed[0]]
            ranges = sides[indexed[0]]
        else:
            run = self.runs[0]
            probes = len(keep.live_low)
            ranges = frozen(np.zeros(probes, np.int32)), frozen(np.full(probes, len(run), np.int32))
        width = survey(*ranges)[0]
        if keep.windowed or len(keep.dimensions):
            width = min(width, 1 << 20)
        elif width > limit:
            return None
        source = Candidates(self.first_position, self.rows, run.order, NOTHING, NOTHING, ranges, ranges)
        return scan(source, keep, width, limit)

    def _match_pair(
        self, first: int, second: int, sides: list[Ranges], keep: RowFilter, limit: int, forced: Strategy | None
    ) -> Matches | Listing | None:
        """Match two dimensions' ranges through their permutation, then filter."""
        probes = len(keep.live_low)
        if forced is Strategy.TREE or (forced is None and self._tree_suits(first, second, sides)):
            return self._list(first, second, sides, keep, limit)
        narrow: dict[int, Ranges] = {}
        width: dict[int, int] = {}
        narrow[first], width[first] = self._narrow(second, first, sides)
        strategy = Strategy.SCAN
        found = width[first]
        if forced or width[first] > SHORT_SCAN * probes:
            narrow[second], width[second] = self._narrow(first, second, sides)
            along, across = (first, second) if width[first] <= width[second] else (second, first)
            partner = self._permutation(along, across).partner
            samples = min(SAMPLES, probes)
            found = count_in_scan(partner, *narrow[along], *narrow[across], samples) * probes // samples
            strategy = forced or self._cheapest(first, second, sides, width, found)
            if strategy is Strategy.TREE:
                return self._list(first, second, sides, keep, limit)
        walks = strategy in (Strategy.WALK, Strategy.WALK_INVERSE)
        along, across = (first, second) if strategy in (Strategy.SCAN, Strategy.WALK) else (second, first)
        source = Candidates(
            self.first_position,
            self.rows,
            self.runs[along].order,
            self._permutation(along, across).partner,
            self.runs[across].order,
            # A walk follows the original ranges: narrowed ones would make it move back and forth.
            sides[along] if walks else narrow[along],
            narrow[across] if walks else sides[across],
        )
        expected = found + found // 4 + 1024
        if walks:
            return walk(source, walk_sequence(source.ranges), keep, expected, limit)
        return scan(source, keep, expected, limit)

    def _list(
        self, first: int, second: int, sides: list[Ranges], keep: RowFilter, limit: int
    ) -> Matches | Listing | None:
        """Match two dimensions' ranges through the merge-sort tree, then filter."""
        values, positions = sorted((first, second))
        tree = self._pair_trees(values, positions).listing()
        return listing(tree, sides[values], sides[positions], self.rows, self.first_position, keep, limit)

    def _tree_suits(self, first: int, second: int, sides: list[Ranges]) -> bool:
        """Whether the listing tree exists and is cheaper than a scan, judged by a few evenly spaced probe rows.

        A tree needs no narrowed ranges, and narrowing all of them can cost as much as the tree.
        """
        values, positions = sorted((first, second))
        trees = self._trees.get((values, positions))
        if trees is None or not trees.lists:
            return False
        probes = len(sides[first][0])
        samples = min(SAMPLES, probes)
        chosen = np.arange(samples) * probes // samples
        few = [(frozen(a[chosen]), frozen(b[chosen])) for a, b in sides]
        ends = sum(self._closed_ends(values, few[values]))
        width = min(self._narrow(second, first, few)[1], self._narrow(first, second, few)[1])
        return (
            trees.list_cost(ends) * samples < SCAN_COST * width + reach(self.rows) * samples
            and width > SHORT_SCAN * samples
        )

    def _cheapest(self, first: int, second: int, sides: list[Ranges], width: dict[int, int], found: int) -> Strategy:
        """The strategy with the least estimated cost, given the narrowed widths and the likely matches."""
        probes = len(sides[first][0])
        strategy, cost = cheapest_without_tree(first, second, sides, width, found, reach(self.rows))
        if not self._grows_trees:
            return strategy
        values, positions = sorted((first, second))
        trees = self._pair_trees(values, positions)
        ends = sum(self._closed_ends(values, sides[values]))
        saving = cost - trees.list_cost(ends) * probes - COPY_COST * found
        return Strategy.TREE if trees.worth_listing(saving) else strategy

    def _closed_ends(self, dimension: int, ranges: Ranges) -> tuple[bool, bool]:
        """Whether any probe row's range leaves out the first ranks, and whether any leaves out the last."""
        _, _, greatest_a, least_b, _ = survey(*ranges)
        return greatest_a > 0, least_b < len(self.runs[dimension])

    def _count_pair(self, sides: list[Ranges], windowed: bool, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Count by the tree or, if that is cheaper, by a scan of the narrowed ranges."""
        trees = self._pair_trees(0, 1)
        if trees.counts and not windowed:
            # A scan may still be a little cheaper, but finding out costs more.
            return trees.counting().count(sides[0], sides[1])
        ends = [sum(self._closed_ends(d, sides[d])) for d in range(2)]
        tree_cost = trees.count_cost(ends[0] * ends[1]) * len(low)
        if windowed:
            live = np.maximum(high - low, 0)
            tree_cost += LOOK_COST * float(np.minimum(live, self.rows - live).sum())
        narrow, width = self._narrow(1, 0, sides)
        scan_cost = LOOK_COST * width + reach(self.rows) * len(low)
        if trees.worth_counting(scan_cost - tree_cost):
            counts = trees.counting().count(sides[0], sides[1])
            if windowed:
                ranks = self._all_ranks()
                count_live(counts, ranks[0], ranks[1], *sides[0], *sides[1], low, high)
        else:
            counts = np.empty(len(low), np.int64)
            partner = self._permutation(0, 1).partner
            count_scanned(self.runs[0].order, partner, *narrow, *sides[1], windowed, low, high, counts)
        return counts

    def _count_rows_within(self, ranges: Ranges, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Count one dimension's range cut by the live rows, which are a range of `ROWS`, the second dimension here."""
        live = frozen(low), frozen(np.maximum(low, high))
        trees = self._pair_trees(ROWS, 0)
        tree_cost = trees.count_cost(2 * sum(self._closed_ends(0, ranges))) * len(low)
        if trees.worth_counting(LOOK_COST * survey(*ranges)[0] + reach(self.rows) * len(low) - tree_cost):
            return trees.counting().count(live, ranges)
        counts = np.empty(len(low), np.int64)
        order = self.runs[0].order
        count_scanned(order, order, *ranges, *live, False, low, high, counts)
        return counts

    def _count_by_probing(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """Count by probing; halve the batch while there are too many matches."""
        limit = COUNTED_AT_ONCE if len(live) > 1 else EVERYWHERE
        matches = self.probe_within(limit, intervals, live, ordered=False)
        if matches is not None:
            return matches.counts()
        middle = len(live) // 2
        parts = slice(0, middle), slice(middle, len(live))
        return np.concatenate(
            [self._count_by_probing([one.rows(part) for one in intervals], live.rows(part)) for part in parts]
        )

    def _narrow(self, source: int, target: int, sides: list[Ranges]) -> tuple[Ranges, int]:
        """The target's ranges, narrowed to what the source's ranges allow."""
        since, until = self._closed_ends(source, sides[source])
        envelope = self._envelope(source, target, until, since)
        return envelope.narrow(sides[source], sides[target])

    def _other_dimensions(
        self, others: list[int], sides: list[Ranges], negated: Sequence[bool]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The filtering dimensions, as fields of a `RowFilter`."""
        if not others:
            return NO_DIMENSIONS
        return (
            self._all_ranks(),
            frozen(np.array(others, np.int64)),
            frozen(np.stack([sides[d][0] for d in others])),
            frozen(np.stack([sides[d][1] for d in others])),
            frozen(np.array([negated[d] for d in others], np.bool_)),
        )

    def _all_ranks(self) -> np.ndarray:
        """Every dimension's ranks by row."""
        ranks = self._ranks
        if ranks is None:
            ranks = self._ranks = frozen(np.stack([ranks_of(run) for run in self.runs]))
        return ranks

    def _rank(self, dimension: int) -> np.ndarray:
        """A dimension's ranks by row; kept only if some dimension filters."""
        return ranks_of(self.runs[dimension]) if self._ranks is None else self._ranks[dimension]

    def use_permutation(self, along: int, across: int, partner: np.ndarray) -> None:
        """Use a permutation array built elsewhere instead of building it on first use. Cost: O(1)."""
        assert len(partner) == len(self.runs[along]), "one partner per rank"
        self._permutations[along, across] = Permutation(self.runs[along].order, frozen(partner, np.int32))

    def _permutation(self, along: int, across: int) -> Permutation:
        permutation = self._permutations.get((along, across))
        if permutation is None:
            permutation = Permutation.between(self.runs[along], self._rank(across))
            self._permutations[along, across] = permutation
        return permutation

    def _pair_trees(self, values: int, positions: int) -> PairTrees:
        """The trees of two dimensions, or of `ROWS` and one dimension; the lower number gives the values."""
        trees = self._trees.get((values, positions))
        if trees is None:
            if values == ROWS:
                order = self.runs[positions].order
                trees = PairTrees(Permutation(order, order), self.rows)
            else:
                trees = PairTrees(self._permutation(positions, values), len(self.runs[values]))
            trees = self._trees.setdefault((values, positions), trees)
        return trees

    def _envelope(self, source: int, target: int, until: bool, since: bool) -> Envelope:
        has_until, has_since, envelope = self._envelopes.get((source, target), (False, False, NO_ENVELOPE))
        if (until and not has_until) or (since and not has_since):
            until, since = until or has_until, since or has_since
            envelope = Envelope.of(self._permutation(source, target).partner, until, since)
            self._envelopes[source, target] = (until, since, envelope)
        return envelope

    def snapshot(self) -> dict[str, np.ndarray]:
        """All but the caches, which are rebuilt after `restore`. Cost: O(dimensions); nothing is copied."""
        arrays = {"block": np.array([self.first_position, self.rows, len(self.runs)], np.int64)}
        for d, run in enumerate(self.runs):
            arrays[f"keys.{d}"] = run.keys
            arrays[f"order.{d}"] = run.order
        return arrays

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> PermutationOffsetJoin:
        """Cost: O(dimensions)."""
        first_position, rows, dimensions = (int(number) for number in snapshot["block"])
        runs = [SortedRun(snapshot[f"keys.{d}"], snapshot[f"order.{d}"], rows) for d in range(dimensions)]
        return cls(first_position, runs)

    def check_invariants(self) -> None:
        for run in self.runs:
            run.check_invariants()
            # All runs belong to the same rows.
            assert run.rows == self.rows
        for run, ranks in zip(self.runs, () if self._ranks is None else self._ranks, strict=False):
            # Ranks and order are inverses of each other; rows without a key have no rank.
            assert (ranks[run.order] == np.arange(len(run))).all()
            assert (ranks >= 0).sum() == len(run)
        for (along, across), permutation in self._permutations.items():
            # Each element of a permutation is the partner rank of the same row.
            assert (permutation.partner == self._rank(across)[self.runs[along].order]).all()
        for (source, target), (until, since, envelope) in self._envelopes.items():
            # Each envelope belongs to its permutation.
            fresh = Envelope.of(self._permutation(source, target).partner, until, since)
            assert (fresh.highest_until == envelope.highest_until).all()
            assert (fresh.lowest_from == envelope.lowest_from).all()
        for trees in self._trees.values():
            trees.check_invariants()


NO_ENVELOPE = Envelope(NOTHING, NOTHING, NOTHING, NOTHING)
