"""Staged rows: kept per attempt, given out after the commit, the source that lags behind first."""

from pathlib import Path

import pyarrow as pa
import pytest

from topology.checks.quotas import Quotas
from topology.entry.staging import Staging
from topology.graph.errors import QuotaError
from topology.graph.messages import rows_bytes


def rows(*times: int | None) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, pa.int64())})


def keep(staging: Staging, source: str, attempt: str, *times: int | None) -> None:
    known = [time for time in times if time is not None]
    staging.keep(source, attempt, rows(*times), (min(known), max(known)) if known else None)


def given_out(staging: Staging) -> list[tuple[str, list[int | None] | None]]:
    """All that is left to give out; None stands for the end of a source."""
    given = []
    while (committed := staging.next()) is not None:
        given.append((committed.source, committed.rows.column("ts").to_pylist() if committed.rows else None))
    return given


def test_rows_are_given_out_after_the_commit_and_then_the_end_of_their_source() -> None:
    staging = Staging()
    keep(staging, "p", "1", 1, 2)
    keep(staging, "p", "1", 3)
    assert staging.next() is None
    staging.commit("p", "1")
    assert given_out(staging) == [("p", [1, 2]), ("p", [3]), ("p", None)]
    assert staging._attempts == {}


def test_only_the_winning_attempt_is_given_out() -> None:
    staging = Staging()
    keep(staging, "p", "first try", 1)
    keep(staging, "p", "second try", 1, 2)
    keep(staging, "q", "first try", 7)
    staging.commit("p", "second try")
    assert given_out(staging) == [("p", [1, 2]), ("p", None)]
    assert list(staging._attempts) == [("q", "first try")]


def test_a_source_without_rows_ends_too() -> None:
    staging = Staging()
    staging.commit("empty", "1")
    assert given_out(staging) == [("empty", None)]


def test_time_bounds_come_back_with_their_rows() -> None:
    staging = Staging()
    bounds = [(1, 4), None, (5, 9)]
    for times in bounds:
        staging.keep("p", "1", rows(0), times)
    staging.commit("p", "1")
    committed = [staging.next() for _ in bounds]
    assert [each.times for each in committed if each is not None] == bounds


def test_the_source_that_lags_behind_in_time_goes_first() -> None:
    staging = Staging()
    times_of: dict[str, list[int | None]] = {"a": [0, 10, 20], "b": [5, 6, 7], "c": [4, 11, None]}
    for source, times in times_of.items():
        for time in times:
            keep(staging, source, "1", time)
        staging.commit(source, "1")
    not_begun = [("a", 0), ("b", 5), ("c", 4)]
    furthest_behind = [("a", 10), ("c", 11), ("b", 6), ("b", 7), ("a", 20), ("c", None)]
    given = [(source, times[0]) for source, times in given_out(staging) if times is not None]
    assert given == not_begun + furthest_behind


def test_all_attempts_share_one_memory_bound_and_losers_give_their_space_back(tmp_path: Path) -> None:
    one = rows_bytes(rows(0))
    staging = Staging(str(tmp_path), memory=3 * one)
    for time in range(5):
        for attempt in ("1", "2", "3"):
            keep(staging, "p", attempt, time)
    assert staging.memory_bytes == 3 * one
    assert staging.nbytes > 15 * one, "rows on disk count, with their schema"
    staging.commit("p", "1")
    kept = staging.nbytes
    assert [times for _, times in given_out(staging)] == [[0], [1], [2], [3], [4], None]
    assert kept > 0
    assert (staging.memory_bytes, staging.nbytes) == (0, 0)


def test_attempts_and_bytes_beyond_the_quotas_are_refused_and_change_nothing() -> None:
    one = rows_bytes(rows(0))
    quotas = Quotas(attempts=2, staged_bytes=3 * one)
    staging = Staging()

    def stage(attempt: str) -> None:
        staging.require_room("in", "p", attempt, rows(0), quotas)
        keep(staging, "p", attempt, 0)

    stage("1")
    stage("2")
    with pytest.raises(QuotaError, match="stream 'in' has 2 attempts staged, and no more are taken: commit some"):
        stage("3")
    stage("2")
    with pytest.raises(QuotaError, match=r"has 24 bytes staged, and at most 24 are taken.* Quotas\(staged_bytes="):
        stage("1")
    staging.commit("p", "1")
    assert given_out(staging) == [("p", [0]), ("p", None)]
    stage("3")


def test_closing_drops_everything() -> None:
    staging = Staging()
    keep(staging, "p", "1", 1)
    keep(staging, "q", "1", 1)
    staging.commit("p", "1")
    staging.close()
    assert staging.next() is None
    assert staging._attempts == {}
