"""The faults: each hits a world while there is something to hit, and says whether it did."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation import damage
from tests.simulation.judge import WrongError
from tests.simulation.world import Report, World
from topology.on_ray.recovery import Recovery
from topology.simulated.life import SimulatedLife
from topology.simulated.worker import SimulatedWorker

Fault = Callable[[World], bool]


def _life(world: World) -> SimulatedLife:
    assert world.life is not None
    return world.life


def _worker_killed(world: World) -> bool:
    running = [worker for worker in _life(world).workers if worker.runs]
    if running:
        _life(world).kill(world.chance.choice(running))
    return bool(running)


def _several_killed(world: World) -> bool:
    if len(_life(world).workers) < 2:
        return False
    for worker in world.chance.sample(_life(world).workers, 2):
        _life(world).kill(worker)
    return True


def _worker_frozen(world: World) -> bool:
    running = [worker for worker in _life(world).workers if worker.runs]
    return _frozen(world.chance.choice(running)) if running else False


def _frozen(worker: SimulatedWorker) -> bool:
    worker.frozen = True
    return True


def _everything_killed(world: World) -> bool:
    world.crash(machine=False)
    return True


def _machine_crashed(world: World) -> bool:
    world.crash(machine=True)
    return True


def _zombie(world: World) -> bool:
    world.abandon()
    return True


def _controller_killed(world: World) -> bool:
    """Its successor knows nothing of earlier lives; the workers go on until they are told."""
    if len(_life(world).workers) < 2:
        return False
    world.recovery = Recovery(lambda: world.now)
    world.incarnation += world.chance.randint(1, 1000)
    world.abandon()
    return True


def _driver_killed(world: World) -> bool:
    """The programs that send and read begin anew, knowing nothing; embedded, that is the process of the topology."""
    for client in world.clients:
        client.restart(0)
    world.forgetful = True
    if world.reader is not None:
        world.reader.close()
        world.reader = None
    if len(_life(world).workers) == 1:
        world.crash(machine=False)
    return True


def _rebalanced(world: World) -> bool:
    """The topology goes on with another engine, or other workers; what the old one had not made durable is lost."""
    world.abandon()
    world.lay_out()
    return True


def _crash_in_a_call(world: World) -> bool:
    world.disk.crash_in = world.chance.randint(0, 6)
    return False  # it is counted when it happens


def _disk_full(world: World) -> bool:
    world.disk.capacity = world.disk.used_bytes + world.chance.randint(0, 300)
    return True


def _disk_failing(world: World) -> bool:
    world.disk.fail = 0.5
    return True


def _bit_flipped(world: World) -> bool:
    return damage.check(world.disk, world.topology, world.most, world.chance, damage.flip_a_bit)


def _sync_lost(world: World) -> bool:
    return damage.check(world.disk, world.topology, world.most, world.chance, damage.lose_a_sync)


def _clock_jumped(world: World) -> bool:
    world.now += world.chance.choice([1.0, 30.0, 3600.0])
    _life(world).report_idle()
    return True


def _reader_left(world: World) -> bool:
    if world.reader is None:
        return False
    world.reader.close()
    world.reader = None
    return True


def _reader_stalled(world: World) -> bool:
    world.stalled_until = world.report.steps + world.chance.randint(50, 400)
    return True


def _sink_slow(world: World) -> bool:
    world.slow_until = world.report.steps + world.chance.randint(100, 400)
    return True


def _acknowledgement_lost(world: World) -> bool:
    world.losing_acknowledgement = True
    return False  # it is counted when it happens


def _frames_delayed(world: World) -> bool:
    full = [edge for edge in _life(world).edges if edge.frames]
    for edge in full:
        edge.held = True
    world.held_until = world.report.steps + world.chance.randint(20, 100)
    return bool(full)


def _edge_cut(world: World) -> bool:
    edges = [edge for edge in _life(world).edges if edge.broken is None]
    if edges:
        world.chance.choice(edges).lose()
    return bool(edges)


def _frame_repeated(world: World) -> bool:
    for edge in world.chance.sample(_life(world).edges, len(_life(world).edges)):
        if edge.repeat():
            if edge.broken is not None:
                raise WrongError(f"edge {edge.name} broke because a frame came twice: {edge.broken}")
            return True
    return False


def _frames_reordered(world: World) -> bool:
    for edge in world.chance.sample(_life(world).edges, len(_life(world).edges)):
        if edge.overtake():
            if edge.broken is None:
                raise WrongError(f"edge {edge.name} let in a frame before the one that was due")
            return True
    return False


FAULTS: dict[str, Fault] = {
    "worker killed": _worker_killed,
    "several workers killed": _several_killed,
    "worker frozen": _worker_frozen,
    "everything killed": _everything_killed,
    "machine crashed": _machine_crashed,
    "crash in a call": _crash_in_a_call,
    "torn write": lambda world: False,  # it is counted when it happens
    "zombie": _zombie,
    "controller killed": _controller_killed,
    "driver killed": _driver_killed,
    "rebalanced": _rebalanced,
    "disk full": _disk_full,
    "disk failing": _disk_failing,
    "bit flipped": _bit_flipped,
    "sync lost": _sync_lost,
    "clock jumped": _clock_jumped,
    "reader left": _reader_left,
    "reader stalled": _reader_stalled,
    "sink slow": _sink_slow,
    "acknowledgement lost": _acknowledgement_lost,
    "call lost": lambda world: world.network.lose_call(world.chance),
    "call repeated": lambda world: world.network.repeat(world.chance, world.report.steps),
    "call delayed": lambda world: world.network.delay(world.chance, world.report.steps),
    "calls reordered": lambda world: world.network.reorder(world.chance),
    "answer lost": lambda world: world.network.lose_reply(world.chance),
    "frames delayed": _frames_delayed,
    "edge cut": _edge_cut,
    "frame repeated": _frame_repeated,
    "frames reordered": _frames_reordered,
}

NETWORK = ("call", "answer", "frame", "edge", "acknowledgement")


def finish(world: World, faults: int, most_steps: int) -> Report:
    """Run a world to its end. Faults are spread over the work: the next is due when its part of the rows is durable.

    faults: so many, at least, come while something is at work; none if there are no rows.
    """
    faults = faults if world.report.rows else 0
    while True:
        done = sum(world.report.faults.values())
        if done >= faults and world.is_over:
            return world.conclude()
        if world.report.steps > most_steps:
            raise WrongError(f"no end after {most_steps} steps: {world.describe()}")
        due = done < faults and (world.finished or done < faults * world.work_done + 1)
        if due and world.life is not None and world.chance.random() < (0.5 if world.finished else 0.05):
            _hit(world)
        world.step()


def _hit(world: World) -> None:
    names = list(FAULTS)
    for name in world.chance.sample(names, len(names)):
        hit = world.at_work()
        if FAULTS[name](world):
            world.hurt = True
            world.note(name, hit)
            return
