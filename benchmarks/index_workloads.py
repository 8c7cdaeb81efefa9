"""Keys distributed as in the papers, and a sliding window for each side."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from indexes import Interval, Keys, Live, WindowIndex

KEY_SPACE = 1 << 31
"""Keys are 32-bit numbers, as in both papers' experiments."""

Distribution = Literal["uniform", "drifting", "heavy-tailed", "increasing", "gaussian", "gamma 3 3", "gamma 1 5"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("uniform", "drifting", "heavy-tailed", "increasing")


@dataclass(frozen=True)
class Workload:
    """A band join of two streams: each row meets, on average, `match_rate` rows of the other's window.

    - uniform: all keys alike.
    - drifting: a Gaussian whose mean goes round the key space (PIM-Tree, section 5).
    - heavy-tailed: a Pareto law as of view counts; many keys are equal (PanJoin, section V-A).
    - increasing: keys ascend with time, as identifiers do, with a little disorder.
    - gaussian: around the middle of the key space, with an eighth of it as deviation (PIM-Tree, figure 13a).
    - gamma k t: a Gamma law of shape k and scale t, with 40 as the end of the key space (PIM-Tree, figure 13a).
    """

    window: int
    batch: int
    match_rate: float = 2.0
    distribution: Distribution = "uniform"

    def keys(self, rng: np.random.Generator, first: int, rows: int) -> np.ndarray:
        """The keys of the rows at positions first, first + 1, ..."""
        if self.distribution == "uniform":
            return rng.integers(0, KEY_SPACE, rows)
        if self.distribution == "heavy-tailed":
            return np.minimum(100 * (1 + rng.pareto(0.8, rows)), KEY_SPACE - 1).astype(np.int64)
        if self.distribution == "gaussian":
            return np.clip(rng.normal(0.5, 0.125, rows) * KEY_SPACE, 0, KEY_SPACE - 1).astype(np.int64)
        if self.distribution.startswith("gamma"):
            shape, scale = (float(number) for number in self.distribution.split()[1:])
            return np.minimum(rng.gamma(shape, scale, rows) / 40 * KEY_SPACE, KEY_SPACE - 1).astype(np.int64)
        positions = np.arange(first, first + rows)
        if self.distribution == "drifting":
            mean = KEY_SPACE / 2 * (1 + 0.6 * np.sin(positions / (2.0 * self.window)))
            return np.clip(rng.normal(mean, KEY_SPACE / 32), 0, KEY_SPACE - 1).astype(np.int64)
        step = KEY_SPACE // (16 * self.window)
        return (positions % (8 * self.window)) * step + rng.integers(0, 64 * step, rows)

    def half_band(self) -> int:
        """The c of `abs(R.key - S.key) <= c` that gives the match rate, found on a sample."""
        rng = np.random.default_rng(4)
        held = np.sort(self.keys(rng, 0, self.window))
        probes = self.keys(rng, self.window, 4096)
        low, high = 0, KEY_SPACE
        while low < high:
            middle = (low + high) // 2
            met = np.searchsorted(held, probes + middle, "right") - np.searchsorted(held, probes - middle)
            low, high = (low, middle) if met.mean() >= self.match_rate else (middle + 1, high)
        return low


@dataclass(frozen=True)
class Steady:
    """The figures of a run in the steady state, in processor time: tuples/s, seconds per tuple, pairs by round."""

    rate: float
    probe: float
    insert: float
    expire: float
    pairs: list[int]
    nbytes: int


Make = Callable[[], WindowIndex]


def batches(workload: Workload, rounds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The input after both windows are full: a micro-batch of each side in each round."""
    rng = np.random.default_rng(3)
    size = workload.batch
    firsts = range(workload.window, workload.window + rounds * size, size)
    return [(workload.keys(rng, first, size), workload.keys(rng, first, size)) for first in firsts]


def window_keys(workload: Workload, side: int) -> np.ndarray:
    """The keys that fill a side's window before the measurement."""
    return workload.keys(np.random.default_rng(1 + side), 0, workload.window)


def filled(workload: Workload, make: Make, side: int) -> WindowIndex:
    """An index with its window full, inserted in micro-batches of a good size."""
    index = make()
    keys = window_keys(workload, side)
    size = max(workload.batch, 1 << 16)
    for first in range(0, workload.window, size):
        index.insert([Keys(keys[first : first + size])])
    return index


def steady(workload: Workload, make: Make, tuples: int, *, ordered: bool = False, seconds: float = 60.0) -> Steady:
    """Probe the other side, insert into its own, expire: both sides alternate, about `tuples` tuples in all.

    Stops early after `seconds`. The sides' windows are full when the measurement begins.
    """
    sides = [filled(workload, make, side) for side in (0, 1)]
    half = workload.half_band()
    size = workload.batch
    rounds = max(2, tuples // (2 * size))
    ends = [workload.window, workload.window]
    spent = [0.0, 0.0, 0.0]
    pairs: list[int] = []
    done = nbytes = 0
    # Processor time, of all threads together: other work on the machine does not count.
    clock = time.process_time
    for pair in batches(workload, rounds):
        pairs.append(0)
        for side, keys in enumerate(pair):
            own, other = sides[side], sides[1 - side]
            end = ends[1 - side]
            live = Live(np.full(size, end - workload.window), np.full(size, end))
            start = clock()
            matches = other.probe([Interval(keys - half, keys + half)], live, ordered=ordered)
            probed = clock()
            own.insert([Keys(keys)])
            ends[side] += size
            inserted = clock()
            own.expire(ends[side] - workload.window)
            expired = clock()
            for place, duration in enumerate((probed - start, inserted - probed, expired - inserted)):
                spent[place] += duration
            pairs[-1] += len(matches.positions)
            done += size
        nbytes = max(nbytes, sides[0].nbytes)
        if sum(spent) > seconds:
            break
    probe, insert, expire = (part / done for part in spent)
    return Steady(done / sum(spent), probe, insert, expire, pairs, nbytes)
