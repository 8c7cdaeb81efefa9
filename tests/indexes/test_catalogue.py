"""Listing an index in the catalogue is all that registers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import CATALOGUE, Interval, Keys, LinearScan, Live, Matches, WindowIndex, catalogue, make_index
from indexes.catalogue import Recipe
from tests.indexes.contract import STEPS, check_against_linear_scan
from tests.indexes.every_index import tiny_index
from tests.indexes.generated import seeds, without_deadline

GUIDE = Path(__file__).parents[2] / "docs" / "indexes.md"


class Minimal(WindowIndex):
    """All that an index must define: five methods, here over one list of batches."""

    def __init__(self, first_position: int) -> None:
        self.first_position = first_position
        self.batches: list[Sequence[Keys]] = []

    def insert(self, keys: Sequence[Keys]) -> None:
        self.batches.append(keys)

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        scan = LinearScan(self.first_position)
        for keys in self.batches:
            scan.insert(keys)
        return scan.probe_within(limit, intervals, live) if self.batches else Matches.empty(len(live))

    def snapshot(self) -> dict[str, np.ndarray]:
        arrays = {"first": np.array([self.first_position])}
        for b, batch in enumerate(self.batches):
            for d, keys in enumerate(batch):
                arrays |= {f"{b} {d} values": keys.values, f"{b} {d} valid": keys.mask()}
        return arrays

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        index = cls(int(snapshot["first"][0]))
        columns: dict[int, list[Keys]] = {}
        for name in snapshot:
            if name.endswith("values"):
                keys = Keys(snapshot[name], snapshot[name.replace("values", "valid")])
                columns.setdefault(int(name.split()[0]), []).append(keys)
        index.batches = list(columns.values())
        return index

    def check_invariants(self) -> None:
        assert all(len(keys) == len(batch[0]) for batch in self.batches for keys in batch)


class Forgetful(Minimal):
    """Loses the third batch."""

    def insert(self, keys: Sequence[Keys]) -> None:
        if len(self.batches) == 2:
            keys = [Keys(column.values, np.zeros(len(column), np.bool_)) for column in keys]
        super().insert(keys)


EXTENDED = {
    **CATALOGUE,
    **{kind.__name__: Recipe(kind, lambda at: {"first_position": at.first_position}) for kind in (Minimal, Forgetful)},
}


@without_deadline
@given(seeds, st.integers(1, 3), st.lists(st.sampled_from(STEPS), min_size=1, max_size=10))
def test_a_new_index_meets_the_contract_with_five_methods(seed: int, dimensions: int, steps: list[str]) -> None:
    make = tiny_index("Minimal", np.random.default_rng(seed), EXTENDED)
    check_against_linear_scan(make, seed, dimensions, steps)


def test_an_index_that_loses_rows_breaks_the_contract() -> None:
    make = tiny_index("Forgetful", np.random.default_rng(0), EXTENDED)
    with pytest.raises(AssertionError):
        for seed in range(20):
            check_against_linear_scan(make, seed, 1, ["insert"] * 10)


def test_a_listed_index_is_made_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "CATALOGUE", EXTENDED)
    assert type(make_index("Minimal", window=10)) is Minimal


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_index_has_a_row_in_the_guide(name: str) -> None:
    kind = CATALOGUE[name].make(catalogue.Place(10, 10)).__class__.__name__
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    assert any(line.startswith(f"| `{kind}`") for line in rows), f"docs/indexes.md: add a row for {kind}"
