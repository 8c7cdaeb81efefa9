"""An image is the same whether its events were applied one by one or read back from the first record of a segment."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology import Decision, Facts, TaskState
from topology.journal.events import (
    Acknowledged,
    Continued,
    Decided,
    Event,
    RowsSent,
    SchemaPinned,
    SnapshotKept,
    SourceEnded,
    SourceOpened,
    Started,
    StreamFinished,
    from_record,
    to_record,
)
from topology.journal.image import Image, SinkImage

ROWS = pa.record_batch({"x": [1, 2, 3]})


def oldest(starts: Sequence[Facts], acknowledged: Facts) -> int:
    return 0


def latest(starts: Sequence[Facts], acknowledged: Facts) -> int:
    """The last start that is not behind what was acknowledged."""
    return max(number for number, start in enumerate(starts) if start.get("at", 0) <= acknowledged["at"])


def new_image() -> Image:
    image = Image("a join", ["results"], latest)
    image.started(1)
    return image


def decided(seq: int, **seen: int) -> Decided:
    return Decided({"R": seen}, Decision(seq, {"took": [["R", "s", 1]]}, {"at": seq}))


EVENTS: list[Event] = [
    RowsSent("R", "s", 0, ROWS, 2.5),
    RowsSent("R", "s", 3, ROWS, float("inf"), "attempt 1"),
    SourceOpened("S", "t"),
    SourceEnded("R", "s"),
    SourceEnded("R", "s", "attempt 1"),
    StreamFinished("S"),
    SchemaPinned("S", pa.schema([("y", pa.dictionary(pa.int8(), pa.string()))])),
    decided(7, s=3),
    SnapshotKept(7, "00000001-ab"),
    Decided({"R": {"s": 0}}),
    Acknowledged("results", 4, 7, 5),
    Started({"seq": 3}, {"R": ROWS.schema}, TaskState({"positions": {"R": 3}}, (ROWS,))),
    Continued(),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_comes_back_from_its_record(event: Event) -> None:
    assert from_record(to_record(event)) == event


def test_a_source_that_is_announced_again_has_been_taken_as_far_as_before() -> None:
    image = new_image()
    for event in (RowsSent("R", "s", 0, ROWS), decided(2, s=3), decided(3, s=0)):
        image.apply(event, 1)
    assert image.source("R", "s").seen == 3


def read_back(image: Image, segment: int) -> Image:
    written = image.started(segment)
    schemas = {name: stream.schema for name, stream in image.streams.items() if stream.schema is not None}
    again = Image("another", ["others"], latest)
    again.apply(from_record(to_record(Started(written, schemas, TaskState()))), segment)
    return again


def facts_of(image: Image) -> object:
    return image.identity, image.streams, image.sinks, image.asides, image.starts, image.seq, image.reached


sources = st.sampled_from(["s", "t"])


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """What may happen to one stream and its sink, in an order that may happen."""
    events: list[Event] = []
    counts = {"s": 0, "t": 0}
    seq = -1
    for _ in range(draw(st.integers(1, 12))):
        source = draw(sources)
        match draw(st.sampled_from(["send", "open", "stage", "decide", "acknowledge", "pin"])):
            case "send":
                events.append(RowsSent("R", source, counts[source], ROWS, counts[source]))
                counts[source] += 3
            case "open":
                events.append(SourceOpened("R", source))
            case "stage":
                events.append(RowsSent("R", f"staged {source}", 0, ROWS, None, "a"))
            case "decide":
                seq += draw(st.integers(1, 3))
                events.append(decided(seq, **{source: draw(st.integers(0, counts[source]))}))
            case "acknowledge":
                events.append(Acknowledged("results", seq, seq, seq + 1))
            case "pin":
                events.append(SchemaPinned("R", ROWS.schema))
    return events


@settings(max_examples=60)
@given(histories(), st.integers(0, 12))
def test_an_image_goes_on_from_the_first_record_of_a_segment(events: list[Event], cut: int) -> None:
    whole, before = new_image(), new_image()
    for event in events[:cut]:
        whole.apply(event, 1)
        before.apply(event, 1)
    whole.started(2)
    after = read_back(before, 2)
    for event in events[cut:]:
        whole.apply(event, 2)
        after.apply(event, 2)
    assert facts_of(after) == facts_of(whole)
    assert after.start() == whole.start()


def test_rows_that_the_task_has_not_taken_keep_their_segment() -> None:
    image = new_image()
    image.apply(RowsSent("R", "s", 0, ROWS), 1)
    image.apply(RowsSent("R", "s", 3, ROWS), 1)
    image.apply(decided(2, s=3), 1)
    image.started(2)
    assert image.starts[-1].inputs == 1
    image.apply(decided(5, s=6), 2)
    image.started(3)
    assert image.starts[-1].inputs == 3


def test_staged_rows_keep_their_segment_and_count_when_they_are_committed() -> None:
    image = new_image()
    image.apply(RowsSent("R", "s", 0, ROWS, None, "a"), 1)
    image.apply(RowsSent("R", "s", 0, ROWS, None, "b"), 1)
    image.started(2)
    assert image.starts[-1].inputs == 1
    assert (image.source("R", "s").count, image.source("R", "s").announced) == (0, False)
    image.apply(SourceEnded("R", "s", "b"), 2)
    known = image.source("R", "s")
    assert (known.count, known.unseen, known.staged) == (3, deque([(3, 1)]), {})


def test_where_to_start_follows_what_was_acknowledged() -> None:
    image = new_image()
    for segment, seq in ((2, 4), (3, 9)):
        image.apply(decided(seq), segment - 1)
        image.started(segment)
    assert image.start().segment == 1
    image.apply(Acknowledged("results", 0, 4, 1), 3)
    assert image.start().segment == 2
    image.apply(Acknowledged("results", 1, 9, 2), 3)
    assert image.start().segment == 3
    assert image.sinks["results"] == SinkImage(1, 9, 2, {"at": 9})


def test_a_sink_that_is_optional_to_read_holds_nothing_back() -> None:
    image = new_image()
    image.apply(Acknowledged("late", 7, -1, 0), 1)
    assert image.asides == {"late": 7}
    assert set(image.sinks) == {"results"}


def test_a_source_that_a_new_life_announces_again_has_not_lost_what_was_taken_of_it() -> None:
    image = new_image()
    image.apply(RowsSent("R", "s", 0, ROWS, 2.5), 1)
    image.apply(decided(2, s=3), 1)
    image.apply(Decided({"R": {"s": 0}}), 1)
    assert image.source("R", "s").seen == 3


def test_only_a_start_with_snapshots_is_used_where_tasks_need_them() -> None:
    image = Image("bolts", ["results"], latest, with_snapshots=True)
    image.started(1)
    for seq, segment in ((10, 2), (20, 3)):
        image.apply(decided(seq), segment - 1)
        image.started(segment)
    image.apply(Acknowledged("results", 5, 20, 6), 3)
    assert image.start().seq == -1
    image.apply(SnapshotKept(10, "first"), 3)
    assert image.start().seq == 10
    image.apply(SnapshotKept(20, "first"), 3)
    assert image.start().seq == 20
    image.forget_before(3)
    assert list(image.snapshots) == [20]
