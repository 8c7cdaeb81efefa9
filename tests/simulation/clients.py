"""The programs that send: each has one source, and a network that loses, repeats, delays and reorders its calls.

A client sends with offsets, a few calls at a time. When an answer does not come, it asks where to go on, or sends again
what was not answered. So it needs nothing but what a program has that uses `send(..., offset=)` and `next_offset`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pyarrow as pa

from topology import OffsetGapError
from topology.durable.group_commit import Ticket
from topology.simulated.life import SimulatedLife

PIPELINED = 2
"""Calls of one client that may be under way."""

PATIENCE = 60
"""Steps that a client waits for an answer."""


@dataclass
class Client:
    """Sends the rows of one source, in batches of any size.

    begins:  the step from which on it sends.
    sent:    the next offset.
    most:    the greatest end of any call: no more can be known anywhere.
    durable: the rows of which it has been told that they survive.
    waits:   calls without an answer; `since`: the last step at which it sent anything.
    attempt: counts how often it has begun anew; answers to calls before that are not heeded.
    """

    stream: str
    source: str
    rows: pa.RecordBatch
    begins: int = 0
    sent: int = 0
    most: int = 0
    durable: int = 0
    ended: bool = False
    waits: int = 0
    since: int = 0
    attempt: int = 0

    def next_call(self, chance: Random, step: int) -> Call | None:
        """The next rows, or the end of the source; None if all has been said."""
        left = self.rows.num_rows - self.sent
        if self.waits >= PIPELINED or step < self.begins or (not left and (self.ended or self.waits)):
            return None
        if not left and self.durable < self.sent:  # an answer was lost; the end comes after all rows
            self.restart(self.durable)
            return None
        rows = self.rows.slice(self.sent, chance.randint(1, 6)) if left else None
        call = Call(self, self.sent, rows, self.attempt)
        self.sent += 0 if rows is None else rows.num_rows
        self.most = max(self.most, self.sent)
        self.waits += 1
        self.since = step
        return call

    def restart(self, known: int) -> None:
        """Go on from where the topology says that it is."""
        self.sent = known
        self.waits = 0
        self.attempt += 1
        self.ended = False


@dataclass(eq=False)
class Call:
    """Some rows on their way, or with None the end of the source."""

    client: Client
    offset: int
    rows: pa.RecordBatch | None
    attempt: int
    due: int = 0
    repeated: bool = False

    @property
    def is_heeded(self) -> bool:
        """Whether its client waits for the answer."""
        return not self.repeated and self.attempt == self.client.attempt


@dataclass(eq=False)
class Reply:
    """The answer to a call, which is given when all rows before `following` are durable."""

    call: Call
    following: int
    ticket: Ticket | None


@dataclass
class Network:
    """Calls and answers on their way."""

    calls: list[Call] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def arrive(self, life: SimulatedLife, step: int) -> bool:
        """Let the first call that is due arrive, if there is room for it; return whether one has."""
        for call in self.calls:
            if call.due > step:
                continue
            if call.rows is not None and not life.has_room(call.client.stream, call.rows):
                return False
            self.calls.remove(call)
            self._take(life, call)
            return True
        return False

    def answer(self) -> None:
        """Let clients hear of what has become durable, or never will."""
        waiting = []
        for reply in self.replies:
            if reply.ticket is not None and not reply.ticket.durable:
                if reply.ticket.error is None:
                    waiting.append(reply)
                continue
            self._hear(reply)
        self.replies = waiting

    def _take(self, life: SimulatedLife, call: Call) -> None:
        client = call.client
        if call.rows is None:
            life.open(client.stream, client.source)
            self.replies.append(Reply(call, 0, life.end(client.stream, client.source)))
            return
        try:
            following, ticket = life.take(client.stream, client.source, call.rows, call.offset)
        except OffsetGapError:
            if call.is_heeded:
                client.restart(life.next_offset(client.stream, client.source))
            return
        self.replies.append(Reply(call, following, ticket))

    def _hear(self, reply: Reply) -> None:
        client = reply.call.client
        if not reply.call.is_heeded:
            return
        client.waits = max(0, client.waits - 1)
        client.durable = max(client.durable, min(reply.following, client.most))
        if reply.call.rows is None:
            client.ended = True

    def forget_life(self) -> None:
        """The process that had taken calls is gone: it answers none of them."""
        self.replies.clear()

    # --- faults

    def lose_call(self, chance: Random) -> bool:
        """A call never arrives."""
        if self.calls:
            self.calls.remove(chance.choice(self.calls))
            return True
        return False

    def lose_reply(self, chance: Random) -> bool:
        """The rows are taken, and the client never hears of it."""
        heeded = [reply for reply in self.replies if reply.call.is_heeded]
        if heeded:
            chance.choice(heeded).call.repeated = True
        return bool(heeded)

    def repeat(self, chance: Random, step: int) -> bool:
        """A call arrives again, perhaps much later."""
        known = [*self.calls, *(reply.call for reply in self.replies)]
        if known:
            call = chance.choice(known)
            due = step + chance.choice([0, 20, 200])
            self.calls.append(Call(call.client, call.offset, call.rows, call.attempt, due, repeated=True))
        return bool(known)

    def delay(self, chance: Random, step: int) -> bool:
        """A call takes longer than its client waits."""
        if self.calls:
            chance.choice(self.calls).due = step + chance.choice([10, 2 * PATIENCE])
        return bool(self.calls)

    def reorder(self, chance: Random) -> bool:
        """Calls arrive in another order."""
        if len(self.calls) < 2:
            return False
        chance.shuffle(self.calls)
        return True
