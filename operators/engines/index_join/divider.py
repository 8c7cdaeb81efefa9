"""The divider: sends each row of a step to the element that stores its key, and to those that hold what it matches.

In: steps from the router. Out: limits and punctuation for every element, and for each its rows.

Every element gets every step's limits, because windows expire by positions in the whole stream. The divisions that are
in use when a row comes depend on where steps end, and so on timing; results do not, because a row asks wherever what it
may meet was stored. So a divider that begins anew may divide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.engines.index_join.dealing import dealt_rows
from operators.engines.index_join.division_map import DivisionMap, evenness
from operators.engines.index_join.key_sample import KeySample, SideSample
from operators.engines.index_join.map_making import best_map
from operators.engines.index_join.reigns import Reigns
from operators.engines.index_join.side_map import Coordinate
from operators.engines.shared.steps import Step, StepTask
from operators.protocol.divided_rows import DividedRows, roles_or_none
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import STEP
from operators.query.predicate import Predicate
from topology import Bolt, Emit, Facts, Task, TaskContext

FIRST_LOOK = 64
"""Rows after which keys are divided by what has come. Before, the first element stores all of a band's rows."""

LOOK_INTERVAL = 1 << 16
"""Rows from one look to the next, or a quarter of the live rows if that is more."""

EARLY_LOOK, UNEVEN = 1 << 13, 1.2
"""Rows, or an eighth of the live rows if that is more, after which a look comes early if the busiest element has got so
many times the mean. Each early look that changes nothing doubles the number."""

GAIN = 0.85
"""The busiest element's work after a new division, which must pay: rows ask by both until the old one is forgotten."""


def dividing_dimensions(predicate: Predicate) -> tuple[int, ...]:
    """The dimensions whose keys tell where a row belongs, equalities first."""
    usable = [d for d, each in enumerate(predicate.dimensions) if not each.made and not each.negated]
    return tuple(sorted(usable, key=lambda d: not predicate.dimensions[d].is_point))


@dataclass(frozen=True)
class Divider(Bolt):
    """Divides the keys of one dimension among `elements` elements, and anew when the distribution drifts.

    dimensions:   those that may decide, the first one at the beginning.
    names:        of these dimensions, as written.
    points:       which of these are equalities.
    rows_per_map: rows after which a division ends, whether another pays or not; None: when another pays.
    """

    negated: tuple[bool, ...]
    dimensions: tuple[int, ...]
    names: tuple[str, ...]
    points: tuple[bool, ...]
    elements: int
    rows_per_map: int | None = None
    beside = "inputs"

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(STEP)

    @property
    def note(self) -> str:
        if not self.names:
            return "no comparison divides the keys: rows are dealt by position, and every row is sent to every element"
        start = "hashes" if self.points[0] else "ranges"
        again = "when loads drift" if self.rows_per_map is None else f"every {self.rows_per_map} rows"
        others = f", or by {' or '.join(self.names[1:])}" if self.names[1:] else ""
        return f"by {start} of the keys of {self.names[0]}{others}; divides anew {again}; at least 1 row sent per row"

    def build(self, context: TaskContext) -> Task:
        return DividerTask(self)


class DividerTask(StepTask):
    """Keeps a sample of the newest rows, and the divisions that hold rows."""

    def __init__(self, description: Divider) -> None:
        super().__init__(description.negated)
        self._description = description
        self._samples = (SideSample(), SideSample())
        self._arrived = [0, 0]
        self._live = (0, 0)
        self._dimensions = tuple(zip(description.dimensions, description.points, strict=True))
        self._reigns = Reigns(DivisionMap.start(self._dimensions, description.elements))
        self._next_look = FIRST_LOOK if description.rows_per_map is None else 1
        self._looked = 0
        self._early = EARLY_LOOK
        self._seen_both = False
        self._sent = np.zeros(description.elements, np.int64)
        self._sent_at_look = self._sent.copy()

    def on_step(self, step: Step) -> Iterable[Emit]:
        yield Emit(step.limits.to_batch())
        at = (self._arrived[LEFT], self._arrived[RIGHT])
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            if rows is not None and len(rows):
                self._samples[side].take(rows)
                self._arrived[side] += len(rows)
        self._live = step.limits.live
        self._look(at)
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            if rows is not None and len(rows):
                yield from self._divided(side, rows, step.last.born)
        yield Emit(step.last)
        # only now: the first rows of the step may meet what the last ones no longer do
        self._reigns.retire(step.limits.live)

    def metrics(self) -> Mapping[str, float]:
        sent = {f"sent_to_{element}": float(count) for element, count in enumerate(self._sent)}
        counted = {"received": sum(self._arrived), "sent": self._sent.sum()}
        counted |= {"maps": self._reigns.begun, "maps_in_use": len(self._reigns)}
        return {**{name: float(count) for name, count in counted.items()}, **sent}

    def details(self) -> Facts:
        """How the keys are divided now; the load of each element and the rows sent per row, as expected and as seen."""
        newest, received = self._reigns.newest, sum(self._arrived)
        if not received:
            return {}
        expected = newest.forecast(self._sample())
        sent = int(self._sent.sum())
        return {
            "division": {
                "of": self._deciding(newest),
                "by": newest.coordinate.value,
                "expected": {"loads": list(expected.loads), "sent": expected.duplication},
                "observed": {"loads": (self._sent / max(1, sent)).tolist(), "sent": sent / received},
                "busiest": {"expected": evenness(expected.loads), "observed": evenness(self._sent.tolist())},
            }
        }

    def check_invariants(self) -> None:
        self._reigns.check_invariants()

    def _deciding(self, division: DivisionMap) -> str:
        """The comparison whose keys decide."""
        if division.coordinate is Coordinate.POSITION:
            return ""
        return self._description.names[self._description.dimensions.index(division.dimension)]

    def _look(self, at: tuple[int, int]) -> None:
        """Divide anew from these positions on, if it is time and pays."""
        received, every = sum(self._arrived), self._description.rows_per_map
        first_of_both = not self._seen_both and all(self._arrived) and received >= FIRST_LOOK
        due = first_of_both or received >= self._next_look or (every is None and self._is_uneven(received))
        if self._reigns.is_full or not due:
            return
        self._seen_both = self._seen_both or first_of_both
        usual = max(min(15 * received, LOOK_INTERVAL), self._live_rows // 4)
        self._looked, self._next_look = received, received + (usual if every is None else every)
        self._sent_at_look = self._sent.copy()
        sample = self._sample()
        found = best_map(sample, self._dimensions, self._description.elements)
        gain = found.forecast(sample).busiest / max(1.0, self._reigns.newest.forecast(sample).busiest)
        if every is not None or gain <= GAIN:
            self._reigns.begin(found, at)
            self._early = EARLY_LOOK
        else:
            self._early *= 2

    def _is_uneven(self, received: int) -> bool:
        """Whether an element has got much more than the others since the last look, over rows enough to tell."""
        if received - self._looked < max(self._early, self._live_rows // 8):
            return False
        return evenness((self._sent - self._sent_at_look).tolist()) > UNEVEN

    @property
    def _live_of_sides(self) -> list[int]:
        return [arrived - below for arrived, below in zip(self._arrived, self._live, strict=True)]

    @property
    def _live_rows(self) -> int:
        return sum(self._live_of_sides)

    def _sample(self) -> KeySample:
        return KeySample(self._samples, self._arrived, self._live_of_sides)

    def _divided(self, side: int, rows: ElementRows, born: float) -> Iterator[Emit]:
        """Send the rows of a side to their elements."""
        positions = np.arange(rows.first, rows.first + len(rows))
        stored = self._reigns.newest.sides[side].stores(rows.keys, positions)
        dealt = dealt_rows(stored, self._reigns.asks(side, rows), self._description.elements)
        for element, (own, roles) in enumerate(dealt):
            if len(own):
                self._sent[element] += len(own)
                part = DividedRows(rows.taken(own), roles_or_none(roles), len(rows))
                yield Emit(part.to_batch(side, born), to=element)
