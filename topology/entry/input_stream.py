"""What an entry knows of one of its streams."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from topology.entry.feeds import StreamFeeds
from topology.entry.followers import Followers
from topology.entry.source_ledger import SourceLedger
from topology.entry.staging import Staging
from topology.graph.messages import Batch, Message


@dataclass
class InputStream:
    """One stream and its two locks; the ledger's own lock may be taken while holding either, not the reverse.

    order:  held while rows wait for room, so that batches enter in the order in which they were numbered.
    staged: held around changes of `staging` and `pump`, and while the attempts of a ledger and the staged rows differ.
    followers: its sources that follow others; changed while holding the ledger's lock.
    pump:   the thread that delivers committed rows; None when none are left.
    ends_when_drained: the stream is finished, and the pump ends it after the last committed rows.
    """

    name: str
    ledger: SourceLedger
    put: Callable[[Message], object]
    wait: Callable[[Batch], object]
    staging: Staging
    feeds: StreamFeeds
    order: threading.Lock
    staged: threading.Lock
    followers: Followers = field(default_factory=Followers)
    pump: threading.Thread | None = None
    ends_when_drained: bool = False
