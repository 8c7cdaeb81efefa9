"""Lines of the log: each names its task, repeats are counted, and the oldest are forgotten."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading

import pyarrow as pa
import pytest

from tests.topology.local.pipelines import numbers, pipeline, read
from topology import LocalRuntime, MapBatches
from topology.handle.log_lines import (
    COLLECTED_LINES,
    KEPT_LINES,
    CollectedLines,
    LogLine,
    LogLines,
    PrintedLines,
    collect_output,
)


def test_a_line_names_the_task_of_its_thread_and_repeats_are_counted() -> None:
    here = threading.get_ident()
    lines = CollectedLines(lambda thread: ("bolt", 2) if thread == here else None)
    logger = logging.Logger("test")
    logger.addHandler(lines)
    for _ in range(3):
        logger.warning("disk %s", "full")
    logger.info("ready")
    logger.debug("never shown")
    other = threading.Thread(target=logger.error, args=("from elsewhere",))
    other.start()
    other.join()
    found = lines.fetch()
    assert [(line.level, line.text, line.component, line.task, line.repeated) for line in found] == [
        ("WARNING", "disk full", "bolt", 2, 3),
        ("INFO", "ready", "bolt", 2, 1),
        ("ERROR", "from elsewhere", "", None, 1),
    ]
    assert lines.fetch() == []
    assert str(found[0]).endswith("WARNING bolt[2] disk full (3 times)")


def test_a_flood_of_different_lines_is_cut_and_says_so() -> None:
    lines = CollectedLines(lambda thread: None)
    for number in range(COLLECTED_LINES + 7):
        lines.note("INFO", f"line {number}", 0)
    found = lines.fetch()
    assert len(found) == COLLECTED_LINES + 1
    assert found[-1].text == "7 more lines of this process are left out"


def test_what_is_printed_passes_on_and_is_collected_by_whole_lines() -> None:
    out, lines = io.StringIO(), CollectedLines(lambda thread: None)
    printed = PrintedLines(out, "INFO", lines)
    print("one", end="", file=printed)
    print(" two\nthree\n\nfo", end="", file=printed)
    print("ur", file=printed)
    assert out.getvalue() == "one two\nthree\n\nfour\n"
    assert [line.text for line in lines.fetch()] == ["one two", "three", "four"]


def test_the_last_lines_are_kept_and_numbered_on() -> None:
    kept = LogLines("racks")
    kept.add([LogLine(0.0, "INFO", str(number)) for number in range(KEPT_LINES + 10)], "worker-1")
    found = kept.after(-1)
    assert len(found) == KEPT_LINES
    assert (found[0].number, found[0].text, found[0].worker, found[0].topology) == (10, "10", "worker-1", "racks")
    assert [line.text for line in kept.after(KEPT_LINES + 7)] == [str(KEPT_LINES + 8), str(KEPT_LINES + 9)]


def test_whoever_asks_the_stand_in_for_standard_output_is_answered_by_the_real_one() -> None:
    with open(os.devnull, "w", encoding="latin-1", errors="replace") as out:
        printed = PrintedLines(out, "INFO", CollectedLines(lambda thread: None))
        assert (printed.fileno(), printed.isatty(), printed.writable()) == (out.fileno(), out.isatty(), True)
        assert (printed.encoding, printed.errors) == ("latin-1", "replace")
        assert printed.buffer is out.buffer


def test_what_code_logs_and_prints_as_errors_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    root, error = logging.getLogger(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.WARNING)
    lines = CollectedLines(lambda thread: ("bolt", 1))
    collect_output(lines)
    root.manager._clear_cache()  # type: ignore[attr-defined]
    try:
        logging.getLogger("mine").info("rack %d", 7)
        logging.getLogger("mine").warning("rack 8 is hot")
        logging.getLogger("interlace").warning("send() waits")
        print("no such rack", file=sys.stderr)
    finally:
        root.manager._clear_cache()  # type: ignore[attr-defined]
    found = [(line.level, line.text) for line in lines.fetch()]
    assert found == [
        ("INFO", "rack 7"), ("WARNING", "rack 8 is hot"), ("WARNING", "send() waits"), ("WARNING", "no such rack"),
    ]  # fmt: skip
    assert error.getvalue() == "rack 8 is hot\nno such rack\n"  # as without a set-up of logging


def test_records_of_an_embedded_topology_name_their_place(caplog: pytest.LogCaptureFixture) -> None:
    def told(rows: pa.RecordBatch) -> pa.RecordBatch:
        logging.getLogger("interlace").warning("hot")
        return rows

    with LocalRuntime().launch(pipeline(MapBatches(told)), name="racks") as running:
        running.logs()
        running.send("in", numbers(1))
        running.finish()
        read(running)
        (line,) = running.logs()
        assert (line.topology, line.component, line.task, line.text) == ("racks", "bolt", 0, "hot")
        logging.getLogger("interlace").warning("from the program")
    places = {record.message: (record.topology, record.component, record.task) for record in caplog.records}  # type: ignore[attr-defined]
    assert places == {"hot": ("racks", "bolt", 0), "from the program": ("", "", "")}
