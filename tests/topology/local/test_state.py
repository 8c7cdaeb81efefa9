"""Topologies in this process that go on after it has died, on a real disk and with real kills."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin
from tests.topology.waiting import wait_for
from topology import (
    Batch,
    Bolt,
    Emit,
    FencedError,
    Input,
    LocalRuntime,
    NoSnapshotError,
    Origin,
    Punctuation,
    RunningTopology,
    SourceEndedError,
    State,
    Task,
    TaskContext,
    TaskError,
    Topology,
    TopologyBuilder,
    TopologyError,
)
from topology.durable.local_disk import LocalDisk
from topology.graph.messages import Barrier
from topology.journal.snapshots import Snapshot, Snapshots

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


def test_what_is_drained_takes_no_more_and_gives_its_results_to_the_end(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path)
    with JOIN.launch(runtime, sources=SOURCES) as running:
        for stream in "RS":
            running.send(stream, pa.table({"x": [1, 2]}), source=f"{stream}-0")
        running.drain()
        with pytest.raises(SourceEndedError):
            running.send("R", pa.table({"x": [1]}), source="R-0")
    with JOIN.launch(runtime, sources=SOURCES) as running:
        running.drain()
        assert sum(batch.num_rows for batch in running.results()) == 4
        with pytest.raises(SourceEndedError):
            running.send("R", pa.table({"x": [1]}), source="R-0")


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


@dataclass(frozen=True)
class Counts(Bolt):
    """Counts the rows of each word; `snapshots`: what it says about its tasks."""

    snapshots: bool = True

    def build(self, context: TaskContext) -> Task:
        return CountsTask()


class CountsTask(Task):
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        assert origin.component == "words"
        words = batch.rows.column("word").to_pylist()
        rows = []
        for word in words:
            self.counts[word] += 1
            rows.append({"word": word, "count": self.counts[word]})
        yield Emit(Batch("default", pa.RecordBatch.from_pylist(rows)))

    def snapshot(self) -> bytes:
        return json.dumps(self.counts).encode()

    def restore(self, snapshot: bytes) -> None:
        self.counts = Counter(json.loads(snapshot))


def counting(bolt: Bolt, tasks: int = 2) -> Topology:
    builder = TopologyBuilder("counting")
    builder.input("words", Input())
    builder.bolt("count", bolt, parallelism=tasks).fields_grouping("words", "word")
    builder.sink().global_grouping("count")
    return builder.build()


def sizes(running: RunningTopology) -> tuple[int, int]:
    """Of the log and of the snapshots, as the status tells them."""
    vitals = running.status().workers[0].vitals
    assert vitals is not None
    assert vitals.free_state
    return vitals.log_bytes, vitals.checkpoint_bytes


def on_disk(directory: Path) -> tuple[int, int]:
    log, snapshots = 0, 0
    for file in directory.rglob("segment-*"):
        with suppress(FileNotFoundError):  # removed meanwhile
            if "snapshots" in file.parts:
                snapshots += file.stat().st_size
            else:
                log += file.stat().st_size
    return log, snapshots


def test_a_users_bolts_go_on_from_their_snapshots_and_the_log_is_trimmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 4096)
    runtime = LocalRuntime(state=tmp_path)
    words = [f"w{number * 7919 % 13}" for number in range(3_000)]
    got: dict[int, tuple[str, int]] = {}
    restored = []
    load = Snapshots.load

    def noted(snapshots: Snapshots, task: tuple[str, int], barrier: Barrier) -> Snapshot:
        restored.append(task)
        return load(snapshots, task, barrier)

    monkeypatch.setattr(Snapshots, "load", noted)
    for life in range(3):
        with runtime.launch(counting(Counts())) as running:
            start = running.next_offset("words", "in")
            assert start == life * 1_000
            for first in range(start, start + 1_000, 20):
                running.send("words", pa.table({"word": words[first : first + 20]}), source="in")
            if life == 2:
                running.finish()
            for first, batch in running.results(numbered=True, timeout=None if life == 2 else 0.2):
                for number, row in enumerate(batch.to_pylist(), first):
                    assert got.setdefault(number, (row["word"], row["count"])) == (row["word"], row["count"])
                running.acknowledge(first + batch.num_rows - 1)
            wait_for(lambda: sizes(running) == on_disk(tmp_path), "the sizes told are not those of the files")
            assert min(sizes(running)) > 0
    assert sorted(got) == list(range(3_000))
    assert Counter(got.values()) == Counter(
        (word, count) for word, total in Counter(words).items() for count in range(1, total + 1)
    )
    assert ("count", 1) in restored
    assert not list(tmp_path.rglob("segment-000000000001-*")), "the log was not trimmed"


def test_the_plan_shows_the_sequencer_and_what_has_no_snapshots(tmp_path: Path) -> None:
    with LocalRuntime(state=tmp_path).launch(counting(NoSnapshots())) as running:
        plan = str(running.topology.plan())
    assert "sequencer [Sequencer]" in plan
    assert "count x2 [NoSnapshots]\n    has no snapshots: the log is kept whole" in plan


class NoSnapshots(Bolt):
    def build(self, context: TaskContext) -> Task:
        return Forgetful()


class Forgetful(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        return ()


@pytest.mark.parametrize(
    ("bolt", "message"),
    [
        (Counts(snapshots=False), "write snapshots = True in Counts"),
        (type("Wrong", (NoSnapshots,), {"snapshots": True})(), r"Forgetful has no snapshot\(\)"),
    ],
)
def test_a_component_that_is_wrong_about_its_snapshots_is_refused(tmp_path: Path, bolt: Bolt, message: str) -> None:
    with pytest.raises(NoSnapshotError, match=message):
        LocalRuntime(state=tmp_path).launch(counting(bolt))


def test_a_topology_of_another_shape_is_refused(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path)
    runtime.launch(counting(Counts())).stop()
    with pytest.raises(TopologyError, match="belongs to another topology"):
        runtime.launch(counting(Counts(), tasks=3))


def test_a_full_disk_makes_senders_wait_and_the_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = threading.Event()
    free = LocalDisk.free_bytes
    monkeypatch.setattr(LocalDisk, "free_bytes", lambda disk: 0 if full.is_set() else free(disk))
    with LocalRuntime(state=tmp_path).launch(counting(Counts())) as running:
        running.send("words", pa.table({"word": ["a"]}))
        assert running.status().trouble == ""
        full.set()
        sending = threading.Thread(target=lambda: [running.send("words", pa.table({"word": ["b"]})) for _ in range(3)])
        sending.start()
        wait_for(lambda: "send() waits for the disk" in running.status().trouble)
        assert running.status().state is State.RUNNING
        assert "nearly full" in str(running.status())
        full.clear()
        sending.join()
        wait_for(lambda: running.status().trouble == "")
        assert running.next_offset("words", "words") == 4


class Punctuating(NoSnapshots):
    def build(self, context: TaskContext) -> Task:
        return PunctuatingTask()


class PunctuatingTask(Forgetful):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        yield Emit(Punctuation(1))


def test_a_task_that_emits_marks_of_its_own_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(TaskError, match="emits Punctuation, which the topology emits itself"),
        LocalRuntime(state=tmp_path).launch(counting(Punctuating())) as running,
    ):
        running.send("words", pa.table({"word": ["a"]}))
        running.finish()
        list(running.results())
