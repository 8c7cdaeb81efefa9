"""testing: topologies in tests, without threads, clock or cluster.

In: a topology or a join, and rows. Out: what every component emitted. Imports nothing of the rooms before; the public
names of topology.

`run` does it in one call; a `Simulation` is driven step by step, with time that passes when the test says so.
`interlace.testing.fixtures` has fixtures for pytest.
"""

from interlace.testing.recording import Recording as Recording
from interlace.testing.simulation import Simulation as Simulation
from interlace.testing.simulation import run as run
