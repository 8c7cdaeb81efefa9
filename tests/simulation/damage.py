"""Damage that a store cannot undo: a copy of the disk gets it, and opening the copy must notice it or see a prefix.

A flipped bit, or a sync that claimed success and did nothing before a crash, destroys what was acknowledged. The log
cannot bring that back. It must say so (`DamagedLogError`), or, where the damage looks like the torn end of the last
write, go on as if that had never been written. The run itself goes on with the disk as it was: somebody has restored it
from a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from tests.simulation.judge import WrongError
from topology import DamagedLogError, StoreError
from topology.durable.disk_store import DiskStore
from topology.durable.names import segments_in
from topology.graph.graph import Topology
from topology.simulated.disk import SimulatedDisk
from topology.simulated.life import opened_by_hand

Known = Mapping[tuple[str, str], int]
"""Rows of each source, and results acknowledged of each sink."""

Damage = Callable[[SimulatedDisk, Sequence[str], Random], str]


def flip_a_bit(disk: SimulatedDisk, names: Sequence[str], chance: Random) -> str:
    """Flip a bit of some file; return its name."""
    name = chance.choice(names)
    disk.flip(name)
    return name


def lose_a_sync(disk: SimulatedDisk, names: Sequence[str], chance: Random) -> str:
    """Lose some of the end of the last file that was written, as if its last syncs had done nothing; then crash."""
    disk.unsync(names[-1], chance.randint(1, disk.size(names[-1])))
    disk.crash()
    return names[-1]


def outcome(disk: SimulatedDisk, topology: Topology, token: str) -> Known | None:
    """Open what is on a disk and read all that would be repeated; what is known then, or None if damage was noticed."""
    try:
        opened = opened_by_hand(topology, DiskStore(disk), token)
        if opened.replay is not None:
            for _ in opened.replay.steps():
                pass
    except (DamagedLogError, StoreError):
        return None
    image = opened.journal.image
    rows = {(stream, name): known.count for stream, of in image.streams.items() for name, known in of.sources.items()}
    return rows | {("", name): sink.number for name, sink in image.sinks.items()}


def check(disk: SimulatedDisk, topology: Topology, most: Known, chance: Random, damage: Damage) -> bool:
    """Damage a copy of a disk, and judge what a process makes of it; return whether there was anything to damage.

    most: what was ever sent, and acknowledged. A segment that is lost may bring back the end of the one before, which
          its writer had cut off; but nothing can be known that nobody has sent.
    """
    token = f"{chance.getrandbits(64):016x}"
    whole = outcome(disk.copy(), topology, token)
    if whole is None:
        return False  # nothing has been begun, or the disk is failing
    copy = disk.copy()
    names = [str(name) for name in sorted(segments_in(copy.names()), key=lambda name: (name.epoch, name.number))]
    damaged = damage(copy, names, chance)
    found = outcome(copy, topology, token)
    if found is None or found == whole:
        return True
    if damaged != names[-1]:
        raise WrongError(f"{damaged} was damaged in the middle of the log, and nobody noticed: {found}, not {whole}")
    for name, count in found.items():
        if count > most[name]:
            raise WrongError(f"a damaged log knows {count} rows of {name}, and there were {most[name]}")
    return True
