"""A reader without results learns for whom the join waits, and a notebook shows it."""

from __future__ import annotations

import logging
from html.parser import HTMLParser

import pytest

from operators import RunningJoin, StreamJoin, TimeWindow
from tests.topology.waiting import wait_for
from topology import Handle, Metrics, StoppedError

JOIN = StreamJoin("R", "S", "R.x < S.x", TimeWindow(5), event_time="ts")
NO_ROWS = "waiting for stream 'S': no source has sent rows: send some, or finish('S')"


def read_nothing(running: Handle) -> None:
    assert list(running.results(timeout=0.01)) == []


def taken(running: RunningJoin, rows: int) -> None:
    wait_for(lambda: running.metrics().total("waiting_rows") + running.metrics().total("merged") == rows)


def test_the_log_names_the_stream_that_is_missing_once(caplog: pytest.LogCaptureFixture) -> None:
    with JOIN.launch() as running:
        running.send("R", {"x": [1, 2], "ts": [1, 2]})
        taken(running, 2)
        with caplog.at_level(logging.WARNING, "interlace"):
            read_nothing(running)
            read_nothing(running)
            assert [record.getMessage() for record in caplog.records] == [f"R join S: no results so far: {NO_ROWS}"]
            caplog.clear()
            running.send("S", {"x": [5], "ts": [1]})
            taken(running, 3)
            assert next(running.results(timeout=30)).num_rows == 1
            running.finish("S")
            wait_for(lambda: running.metrics().total("waiting_rows") == 0)
            assert running.waiting_for() == ""


def test_a_source_that_holds_the_others_back_is_a_reason() -> None:
    with JOIN.launch(sources={"R": ["R"], "S": ["S", "silent"]}) as running:
        running.send("R", {"x": [1], "ts": [1]})
        running.send("S", {"x": [2], "ts": [1]})
        taken(running, 2)
        assert running.waiting_for().startswith(
            "rows wait until every open source has sent a row as late, or has ended"
        )
        running.finish()
        assert sum(rows.num_rows for rows in running.results()) == 1


def test_nothing_is_said_of_a_stream_that_is_finished_or_of_rows_that_match_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with JOIN.launch() as running, caplog.at_level(logging.INFO, "interlace"):
        running.finish("S")
        running.send("R", {"x": [1], "ts": [1]})
        wait_for(lambda: running.metrics().total("merged") == 1)
        read_nothing(running)
    assert caplog.records == []


def test_before_any_rows_all_streams_are_missing() -> None:
    with JOIN.launch() as running:
        assert running.waiting_for().count("no source has sent rows") == 2


class Texts(HTMLParser):
    """Checks that tags are closed, and collects the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.opened: list[str] = []
        self.feed(html)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_notebook_shows_what_runs_and_what_was_counted() -> None:
    with StreamJoin("<a>", "b", '"<a>".x < b.x', TimeWindow(5), event_time="ts").launch() as running:
        running.send("<a>", {"x": [1, 2], "ts": [1, 2]})
        wait_for(lambda: running.metrics().total("waiting_rows") == 2)
        shown = Texts(running._repr_html_()).texts
        assert shown[0] == "<a> join b"
        assert shown[1] == ": running, waiting for stream 'b': no source has sent rows: send some, or finish('b')"
        counted = Texts(running.metrics()._repr_html_()).texts
        assert counted[:6] == ["component", "task", "rows in", "rows out", "bytes waiting", "seconds busy"]
        assert counted[6:9] == ["<a>", "0", "2"]
    assert Texts(running._repr_html_()).texts[1] == ": stopped"


def test_a_handle_that_cannot_be_asked_shows_why() -> None:
    class Gone(RunningJoin):
        def metrics(self) -> Metrics:
            raise StoppedError("the topology has <gone>")

    with JOIN.launch() as running:
        gone = Gone(running._running, JOIN)
        assert Texts(gone._repr_html_()).texts == ["R join S", ": the topology has <gone>"]
        read_nothing(gone)
