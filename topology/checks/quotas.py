"""What the clients of a topology may use: limits, and what each token uses now.

A token holds what it uses: calls under way, the connections that they came over, sources that it has opened and that
have not ended. So one client cannot take what another needs. Names are counted as they are checked; a refused call
uses nothing.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from topology.graph.errors import InputError, QuotaError, TopologyError


@dataclass(frozen=True)
class Quotas:
    """How much the clients of a topology may use. Calls inside the program that runs it are not limited.

    The messages of one token take at most about four times `streams` times `message_bytes` of memory.

    message_bytes: one message, as it arrives and unpacked; also the rows that a message may claim.
    header_bytes:  the description of one message: names and types of columns, metadata.
    name_bytes:    the name of a source or of an attempt.
    sources:       sources that one token has opened and that have not ended, in each stream.
    streams:       calls of one token at the same time.
    connections:   connections over which one token has calls at the same time.
    staged_bytes:  rows of a stream that are staged or committed and have not entered yet, in memory and on disk.
    attempts:      attempts of a stream that are staged and not committed.
    """

    message_bytes: int = 8 * 1024 * 1024
    header_bytes: int = 256 * 1024
    name_bytes: int = 1024
    sources: int = 1000
    streams: int = 128
    connections: int = 128
    staged_bytes: int = 64 * 1024 * 1024 * 1024
    attempts: int = 4000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise TopologyError(f"Quotas({field.name}={value!r}) must be a whole number above 0")

    def check_name(self, what: str, name: str) -> None:
        """Raise an error unless the name of a source or an attempt can be kept and shown."""
        if len(name.encode("utf-8", "surrogatepass")) > self.name_bytes:
            raise QuotaError(
                f"the name of {what} has more than {self.name_bytes:,} bytes: shorten it, or raise "
                f"Quotas(name_bytes=...)"
            )
        if not name.isprintable():
            raise InputError(f"the name of {what} has characters that cannot be shown: {name[:80]!r}")


class Usage:
    """What one token uses now. Any thread may call it."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._sources: dict[str, set[str]] = {}

    @contextmanager
    def call(self, peer: str) -> Iterator[None]:
        """Count a call, as long as it lasts, of the connection `peer`."""
        with self._lock:
            if self._calls.total() >= self._quotas.streams:
                raise self._exceeded(f"{self._quotas.streams:,} calls under way", "end some", "streams")
            if peer not in self._calls and len(self._calls) >= self._quotas.connections:
                raise self._exceeded(f"{self._quotas.connections:,} connections", "share or close some", "connections")
            self._calls[peer] += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls[peer] -= 1
                if not self._calls[peer]:
                    del self._calls[peer]

    @contextmanager
    def source(self, stream: str, source: str, is_open: Callable[[str], bool]) -> Iterator[None]:
        """Count a source that the calls inside open, unless they are refused; `is_open`: whether a source lives."""
        with self._lock:
            counted = self._sources.setdefault(stream, set())
            fresh = source not in counted
            if fresh and len(counted) >= self._quotas.sources:
                counted.intersection_update([name for name in counted if is_open(name)])
                if len(counted) >= self._quotas.sources:
                    opened = f"{self._quotas.sources:,} open sources in stream '{stream}'"
                    raise self._exceeded(opened, "finish some, or send rows of several under one name", "sources")
            counted.add(source)
        try:
            yield
        except BaseException:
            if fresh:
                with self._lock:
                    counted.discard(source)
            raise

    def _exceeded(self, used: str, remedy: str, quota: str) -> QuotaError:
        return QuotaError(f"this token has {used}, and no more are taken: {remedy}, or raise Quotas({quota}=...)")


class Meter:
    """The usage of every token that has called; tokens are known by a digest."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._lock = threading.Lock()
        self._usage: dict[bytes, Usage] = {}

    def of(self, digest: bytes) -> Usage:
        """Return the usage of a token; only of one that the authority has issued, or anyone could add to the table."""
        with self._lock:
            return self._usage.setdefault(digest, Usage(self._quotas))
