"""Topologies in this process that go on after it has died, on a real disk and with real kills."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin
from topology import FencedError, Input, LocalRuntime, PassOn, TaskError, TopologyBuilder, TopologyError
from topology.graph.components import Bolt, Task, TaskContext

ROWS = 4_000
JOIN = StreamJoin("R", "S", "abs(R.x - S.x) <= 1", CountWindow(300, slide=100), select=["R.x", "S.x"])
SOURCES = {"R": ["R-0"], "S": ["S-0"]}

PROGRAM = """
    import sys
    import pyarrow as pa
    from operators import CountWindow, StreamJoin
    from topology import LocalRuntime

    join = StreamJoin("R", "S", "abs(R.x - S.x) <= 1", CountWindow(300, slide=100), select=["R.x", "S.x"])
    rows = pa.table({{"x": [(i * 7919) % 500 for i in range({rows})]}})
    with join.launch(LocalRuntime(state=sys.argv[1]), sources={{"R": ["R-0"], "S": ["S-0"]}}) as running:
        for start in range(0, {rows}, 50):
            for stream in "RS":
                known = running.send(stream, rows.slice(start, 50), source=f"{{stream}}-0", offset=start)
                print(stream, known, flush=True)
            for first, batch in running.results(numbered=True, timeout=0.01):
                print("got", first, batch.num_rows, flush=True)
                running.acknowledge(first + batch.num_rows - 1)
                break
        running.finish()
        for first, batch in running.results(numbered=True):
            print("got", first, batch.num_rows, flush=True)
"""


def expected() -> pa.Table:
    rows = pa.table({"x": [(i * 7919) % 500 for i in range(ROWS)]})
    return JOIN.collect({"R": {"R-0": rows}, "S": {"S-0": rows}})


def test_a_program_that_is_killed_again_and_again_goes_on_where_it_was(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(rows=ROWS))
    durable = {"R": 0, "S": 0}
    given = 0
    for kill_after in (3, 40, 90):
        died = subprocess.Popen(
            [sys.executable, str(program), str(tmp_path / "state")], stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[3],
        )  # fmt: skip
        assert died.stdout is not None
        for number, line in enumerate(died.stdout):  # also what it said between the kill and its death
            if number == kill_after:
                died.kill()
            what, *numbers = line.split()
            if not line.endswith("\n") or len(numbers) != (2 if what == "got" else 1):
                continue  # it died while it said this
            if what == "got":
                given = max(given, int(numbers[0]) + int(numbers[1]))
            else:
                durable[what] = int(numbers[0])
        died.wait()
        died.stdout.close()
    with JOIN.launch(LocalRuntime(state=tmp_path / "state"), sources=SOURCES) as running:
        rows = pa.table({"x": [(i * 7919) % 500 for i in range(ROWS)]})
        known = {stream: running.next_offset(stream, f"{stream}-0") for stream in "RS"}
        assert known["R"] >= durable["R"]
        assert known["S"] >= durable["S"]
        for start in range(0, ROWS, 100):  # all again, in other batches: what is there is dropped
            for stream in "RS":
                running.send(stream, rows.slice(start, 100), source=f"{stream}-0", offset=start)
        running.finish()
        right = expected()
        got = list(running.results(numbered=True))
    first = got[0][0]
    assert first <= given  # nothing was acknowledged that was not given out
    assert pa.Table.from_batches([batch for _, batch in got]).equals(right.slice(first).combine_chunks())


def test_what_was_acknowledged_does_not_come_again_and_numbers_go_on(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path)
    rows = pa.table({"x": [1, 2, 3]})
    with JOIN.launch(runtime, sources=SOURCES) as running:
        running.send("R", rows, source="R-0")
        running.send("S", rows, source="S-0")
        found = running.results(numbered=True)
        first, _ = next(found)
        running.acknowledge(first + 1)
        found.close()
    with JOIN.launch(runtime, sources=SOURCES) as running:
        running.finish()
        numbers = [first + i for first, batch in running.results(numbered=True) for i in range(batch.num_rows)]
        assert numbers == list(range(2, 7))


def test_a_finished_topology_gives_its_results_again_and_takes_no_more(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path)
    with JOIN.launch(runtime, sources=SOURCES) as running:
        running.send("R", pa.table({"x": [1]}), source="R-0")
        running.send("S", pa.table({"x": [1]}), source="S-0")
        running.finish()
    with JOIN.launch(runtime, sources=SOURCES) as running:
        running.finish()
        assert sum(batch.num_rows for batch in running.results()) == 1


def test_another_query_is_refused(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path)
    JOIN.launch(runtime, name="pairs").stop()
    other = StreamJoin("R", "S", "R.x < S.x", CountWindow(10))
    with pytest.raises(TopologyError, match="belongs to another topology"):
        other.launch(runtime, name="pairs")


def test_a_second_launch_takes_over_and_the_first_can_acknowledge_nothing(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path)
    first = JOIN.launch(runtime, sources=SOURCES)
    first.send("R", pa.table({"x": [1]}), source="R-0")
    with JOIN.launch(runtime, sources=SOURCES) as second:
        assert second.next_offset("R", "R-0") == 1
        with pytest.raises((FencedError, TaskError)):
            for _ in range(100):
                first.send("R", pa.table({"x": [1]}), source="R-0")
                time.sleep(0.01)
        assert second.next_offset("R", "R-0") == 1
    first.stop()


def test_the_log_is_trimmed_as_results_are_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 4096)
    runtime = LocalRuntime(state=tmp_path)
    sizes = []
    with JOIN.launch(runtime, sources=SOURCES) as running:
        for start in range(0, 40_000, 500):
            rows = pa.table({"x": [i % 5_000 for i in range(start, start + 500)]})
            running.send("R", rows, source="R-0")
            running.send("S", rows, source="S-0")
            for _ in running.results(timeout=0.05):
                pass
            sizes.append(sum(file.stat().st_size for file in tmp_path.rglob("segment-*")))
    assert sizes[-1] < 200_000 < 80_000 * 8


class Passing(Bolt):
    def build(self, context: TaskContext) -> Task:
        return PassOn()


def test_a_topology_that_cannot_go_on_is_refused(tmp_path: Path) -> None:
    builder = TopologyBuilder("pass")
    builder.input("in", Input())
    builder.bolt("pass", Passing()).shuffle_grouping("in")
    builder.sink().global_grouping("pass")
    with pytest.raises(TopologyError, match="puts its rows in one order"):
        LocalRuntime(state=tmp_path).launch(builder.build())
