"""A lease lapses when it is not renewed in time, and not before."""

from topology.on_ray.lease import Lease, LeaseSeconds, WakingClock


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_lapses_without_renewal_and_lives_with_it() -> None:
    clock = Clock()
    lease = Lease(10.0, clock)
    clock.now += 10.0
    assert (lease.silent, lease.lapsed) == (10.0, False)
    lease.renew()
    clock.now += 9.0
    assert (lease.silent, lease.lapsed) == (9.0, False)
    clock.now += 1.5
    assert (lease.silent, lease.lapsed) == (10.5, True)
    lease.renew()
    assert (lease.silent, lease.lapsed) == (0.0, False)


def test_nobody_is_blamed_before_a_silent_worker_could_be_found() -> None:
    seconds = LeaseSeconds()
    assert seconds.owner == 10.0
    assert seconds.blame > seconds.worker
    assert seconds.owner + seconds.worker <= 30.0  # whatever dies, nothing is left after 30 s


def test_a_clock_does_not_count_the_time_in_which_its_own_process_slept() -> None:
    clock = Clock()
    waking = WakingClock(2.0, clock)
    lease = Lease(10.0, waking)
    clock.now += 1.0
    waking.tick()
    clock.now += 60.0
    assert lease.silent == 1.0
    waking.tick()
    assert (lease.silent, lease.lapsed) == (3.0, False)
    for _ in range(8):
        clock.now += 1.0
        waking.tick()
    assert (lease.silent, lease.lapsed) == (11.0, True)
