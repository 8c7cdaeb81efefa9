"""Lines of the log: each names its task, repeats are counted, and the oldest are forgotten."""

from __future__ import annotations

import io
import logging
import threading

from topology.handle.log_lines import COLLECTED_LINES, KEPT_LINES, CollectedLines, LogLine, LogLines, PrintedLines


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
    kept = LogLines()
    kept.add([LogLine(0.0, "INFO", str(number)) for number in range(KEPT_LINES + 10)], "worker-1")
    found = kept.after(-1)
    assert len(found) == KEPT_LINES
    assert (found[0].number, found[0].text, found[0].worker) == (10, "10", "worker-1")
    assert [line.text for line in kept.after(KEPT_LINES + 7)] == [str(KEPT_LINES + 8), str(KEPT_LINES + 9)]
