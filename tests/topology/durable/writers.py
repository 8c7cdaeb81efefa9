"""Writers of one log that run step by step, and a history that says whether the log kept its promise.

A writer takes the log over, begins a segment, and commits records one by one. The history notes what each of them read
when it took over, and what it has acknowledged. At the end a successor reads the log, and then:

- everything that was acknowledged is there, once, in order;
- a writer's records follow exactly what it had read: nothing that another one wrote later has got in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.topology.durable.stores import all_records, number_of, numbered
from topology.durable.log import Log
from topology.durable.names import Epoch
from topology.durable.record import Position
from topology.durable.store import Store
from topology.durable.take_over import take_over, take_over_steps
from topology.graph.errors import FencedError, StoreError

Actor = Generator[None, None, None]
Script = str
"""What a writer does then: c commits a record, f five at once, r begins a segment first, t trims to the segment."""

ATTEMPTS = 20


@dataclass
class Life:
    """What one writer has seen and promised.

    trimmed_to: the first segment that it found or, from the moment it tries, wanted to keep.
    """

    epoch: Epoch
    read: list[int]
    trimmed_to: int
    appended: list[int] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)


@dataclass
class History:
    """All lives on one store. `make` opens the store for one process."""

    make: Callable[[], Store]
    lives: list[Life] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    _number: int = 0
    _tokens: int = 0

    def writer(self, script: Script) -> Actor:
        """Return a writer that has not begun."""
        self._tokens += 1
        return self._writer(script, f"{self._tokens:016x}")

    def _writer(self, script: Script, token: str) -> Actor:
        store = self.make()
        try:
            taken = yield from take_over_steps(store, token)
            found = [number_of(record) for position, record in all_records(taken) if position.record > 0]
            log = taken.start(numbered(0), reserve=0)
            life = Life(taken.epoch, found, taken.segments[0] if taken.segments else 1)
            yield from self._durable(log, life)
            self.lives.append(life)
            for call in script:
                yield from self._take(call, log, life)
        except FencedError:
            return

    def _take(self, call: str, log: Log, life: Life) -> Actor:
        if call == "t":
            # Said first: from the mark on, the successor may find the segments gone.
            assert log.durable is not None
            life.trimmed_to = log.durable.segment
            for _ in range(ATTEMPTS):
                try:
                    yield from log.trim_steps(life.trimmed_to)
                    return
                except StoreError:
                    continue
            return
        if call == "r":
            log.rotate(numbered(0))
        for _ in range(5 if call == "f" else 1):
            self._number += 1
            life.appended.append(self._number)
            self.positions[self._number] = log.append(numbered(self._number, rows=self._number % 4))
        yield from self._durable(log, life)

    def _durable(self, log: Log, life: Life) -> Actor:
        """Commit until everything is durable; a disk that stays full or broken makes the writer give up."""
        for _ in range(ATTEMPTS):
            try:
                for _ in log.commit_steps():
                    self._note(log, life)
                    yield
                self._note(log, life)
                if not log.disk_full:
                    return
            except StoreError:
                continue
        raise FencedError("gave up")

    def _note(self, log: Log, life: Life) -> None:
        """What the log calls durable is acknowledged at once, even in the middle of a commit."""
        if log.durable is not None:
            life.acknowledged = [number for number in life.appended if self.positions[number] <= log.durable]

    def race(self, seed: int) -> None:
        """Let two to four writers begin together, and take turns as the seed decides."""
        choice = Random(seed)
        actors = [
            self.writer("".join(choice.choices("cfrt", k=choice.randrange(4)))) for _ in range(choice.randrange(2, 5))
        ]
        while actors:
            run_together(actors, choice.randrange)

    def check(self, found: list[int] | None = None) -> None:
        """Take over, read everything, and compare."""
        if found is None:
            found = self.final()
        assert found == sorted(set(found)), f"once and in order: {found}"
        # A trim of an earlier writer counts if its successor found it, as the successor's life says.
        first = max(self.lives, key=lambda life: life.epoch).trimmed_to if self.lives else 1
        for life in self.lives:
            promised = {number for number in life.acknowledged if self.positions[number].segment >= first}
            assert promised <= set(found), f"acknowledged and lost: {sorted(promised - set(found))} not in {found}"
            if promised:
                self._check_prefix(life, found)

    def _check_prefix(self, life: Life, found: list[int]) -> None:
        """What the writer had read comes before its first record, without what was trimmed meanwhile."""
        before = [number for number in found if number < life.appended[0]]
        kept = [number for number in life.read if number >= found[0]]
        assert before == kept, f"read {life.read}, and now {before} come before {life.appended[0]}"

    def final(self) -> list[int]:
        """What a successor reads."""
        self._tokens += 1
        taken = take_over(self.make(), f"{self._tokens:016x}")
        return [number_of(record) for position, record in all_records(taken) if position.record > 0]


def schedules(run: Callable[[Callable[[int], int]], None]) -> Iterator[None]:
    """Run something once for each way in which its choices can be made; `choose(n)` returns 0 to n - 1."""
    path: list[tuple[int, int]] = []
    while True:
        taken = 0

        def choose(options: int) -> int:
            nonlocal taken
            if taken == len(path):
                path.append((0, options))
            choice, known = path[taken]
            assert known == options, "the same choices lead to the same questions"
            taken += 1
            return choice

        run(choose)
        yield
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return
        path[-1] = (path[-1][0] + 1, path[-1][1])


def until(done: Callable[[], bool], actor: Actor) -> Actor:
    """The first steps of an actor, until something has happened; the others can be taken later."""
    while not done() and next(actor, actor) is not actor:
        yield


def run_together(actors: list[Actor], choose: Callable[[int], int]) -> None:
    """Let actors take turns, step by step, until the first of them has ended."""
    first = actors[0]
    while first in actors:
        actor = actors[choose(len(actors)) if len(actors) > 1 else 0]
        if next(actor, actor) is actor:
            actors.remove(actor)
