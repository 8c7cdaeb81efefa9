"""Savepoints: whole copies from which a topology begins elsewhere, whatever has become of the original."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from operators import CountWindow, RunningJoin, StreamJoin
from tests.s3_server import below, s3_server
from tests.topology.waiting import done_within, wait_for
from topology import (
    LocalRuntime,
    RunningTopology,
    Store,
    StoreError,
    Topology,
    TopologyBuilder,
    TopologyError,
    bolt,
    open_store,
)
from topology.durable import copying
from topology.graph.messages import Barrier
from topology.journal.snapshots import Snapshot, Snapshots

ROWS = 6_000
JOIN = StreamJoin("R", "S", "abs(R.x - S.x) <= 1", CountWindow(300, slide=100), kind="full", select=["R.x", "S.x"])
SOURCES = {"R": ["R-0"], "S": ["S-0"]}


@pytest.fixture(params=["directory", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "directory":
        yield str(tmp_path / "state")
    else:
        with s3_server() as uri:
            yield below(uri, "state")


@cache
def rows() -> pa.Table:
    return pa.table({"x": [(i * 7919) % 500 for i in range(ROWS)]})


@cache
def expected() -> pa.Table:
    return JOIN.collect({"R": {"R-0": rows()}, "S": {"S-0": rows()}}).combine_chunks()


def send(running: RunningJoin, first: int, end: int) -> None:
    for start in range(first, end, 500):
        for stream in "RS":
            running.send(stream, rows().slice(start, min(500, end - start)), source=f"{stream}-0", offset=start)


def acknowledge_all(running: RunningJoin) -> int:
    """Read what has come, and acknowledge it; return the number of the next result."""
    end = 0
    for number, batch in running.results(numbered=True, timeout=0.5):
        end = number + batch.num_rows
        running.acknowledge(end - 1)
    return end


def rest(running: RunningJoin) -> tuple[int, pa.Table]:
    """Send the other rows, and return the number of the first result that comes, and all."""
    offsets = {stream: running.next_offset(stream, f"{stream}-0") for stream in "RS"}
    send(running, min(offsets.values()), ROWS)
    running.finish()
    found = list(running.results(numbered=True))
    return found[0][0], pa.Table.from_batches([batch for _, batch in found]).combine_chunks()


def test_a_topology_begins_from_a_savepoint_in_another_place_under_another_name(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 8192)
    with JOIN.launch(LocalRuntime(state=place), sources=SOURCES, name="a") as running:
        send(running, 0, 3_000)
        read = acknowledge_all(running)
        saved = running.savepoint()
        send(running, 3_000, 6_000)  # it goes on, and forgets what the savepoint needs
        acknowledge_all(running)
    if "://" not in place:
        shutil.rmtree(Path(place) / "a")
    elsewhere = LocalRuntime(state=tmp_path / "elsewhere", savepoint=saved)
    with JOIN.launch(elsewhere, sources=SOURCES, name="b") as running:
        assert running.next_offset("R", "R-0") == 3_000
        first, found = rest(running)
        assert first == read
        assert found.equals(expected().slice(first))
        running.acknowledge(first + 99)
    with JOIN.launch(elsewhere, sources=SOURCES, name="b") as running:  # launched again it goes on, from where it was
        running.finish()
        assert next(running.results(numbered=True))[0] == first + 100


def test_savepoints_of_one_topology_do_not_touch_each_other(tmp_path: Path) -> None:
    runtime = LocalRuntime(state=tmp_path / "state")
    saved = []
    for end in (1_000, 2_000):  # in two lives
        with JOIN.launch(runtime, sources=SOURCES) as running:
            send(running, 0, end)
            saved += [running.savepoint(), running.savepoint()]
    assert len(set(saved)) == 4
    for number, place in enumerate(saved):
        begun = LocalRuntime(state=tmp_path / f"{number}", savepoint=place)
        with JOIN.launch(begun, sources=SOURCES) as running:
            assert running.next_offset("S", "S-0") == (1_000 if number < 2 else 2_000)
            assert rest(running) == (0, expected())


class CrashError(Exception):
    pass


@pytest.mark.parametrize("survives", [0, 1, 3])
def test_a_restore_that_a_crash_cuts_off_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 2048)
    with JOIN.launch(LocalRuntime(state=tmp_path / "state"), sources=SOURCES) as running:
        for end in range(500, ROWS, 500):  # a segment begins with a step, and how many steps there are depends on time
            send(running, end - 500, end)
            if done_within(lambda: len(list(tmp_path.rglob("segment-*"))) > survives, 1.0):
                break
        saved = running.savepoint()
    assert len(list(tmp_path.rglob("segment-*"))) > survives
    write, left = copying._write, iter(range(survives))

    def write_some(target: Store, name: str, content: list[pa.Buffer]) -> None:
        if next(left, None) is None:
            raise CrashError
        write(target, name, content)

    monkeypatch.setattr(copying, "_write", write_some)
    runtime = LocalRuntime(state=tmp_path / "new", savepoint=saved)
    with pytest.raises(CrashError):
        JOIN.launch(runtime, sources=SOURCES)
    monkeypatch.setattr(copying, "_write", write)
    with JOIN.launch(runtime, sources=SOURCES) as running:
        assert rest(running) == (0, expected())


def test_what_is_no_whole_savepoint_is_refused(tmp_path: Path) -> None:
    with JOIN.launch(LocalRuntime(state=tmp_path / "state"), sources=SOURCES) as running:
        saved = running.savepoint()
    store = open_store(saved)
    store.unmark(copying.WHOLE)
    store.close()
    for place in (saved, str(tmp_path / "nowhere")):
        with pytest.raises(StoreError, match=r"give what savepoint\(\) returned"):
            JOIN.launch(LocalRuntime(state=tmp_path / "new", savepoint=place))
    with pytest.raises(TopologyError, match="give state=, too"):
        JOIN.launch(LocalRuntime(savepoint=saved))
    stateless = JOIN.launch(LocalRuntime())
    with stateless, pytest.raises(TopologyError, match=r"no state.*LocalRuntime\(state="):
        stateless.savepoint()


@bolt
class Numbered:
    """Counts rows over all lives."""

    def __init__(self) -> None:
        self.count = 0

    def execute(self, rows: pa.RecordBatch) -> dict[str, list[int]]:
        first = self.count
        self.count += rows.num_rows
        return {"x": rows["x"].to_pylist(), "number": list(range(first, self.count))}


def numbering() -> Topology:
    builder = TopologyBuilder("numbering")
    builder.input("in")
    builder.bolt("numbered", Numbered).global_grouping("in")
    builder.sink().global_grouping("numbered")
    return builder.build()


def has_checkpoint(running: RunningTopology) -> bool:
    vitals = running.status().workers[0].vitals
    return vitals is not None and vitals.checkpoint_bytes > 0


def test_a_savepoint_has_the_snapshots_of_bolts(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topology.journal.opening.SEGMENT_BYTES", 2048)
    loaded: list[str] = []
    load = Snapshots.load

    def noted(snapshots: Snapshots, task: tuple[str, int], barrier: Barrier) -> Snapshot:
        loaded.append(task[0])
        return load(snapshots, task, barrier)

    monkeypatch.setattr(Snapshots, "load", noted)
    with LocalRuntime(state=place).launch(numbering(), name="a") as running:
        for first in range(0, 1_000, 100):
            running.send("in", rows().slice(first, 100))
            for number, batch in running.results(numbered=True, timeout=0.05):
                running.acknowledge(number + batch.num_rows - 1)
            if first == 300:
                wait_for(lambda: has_checkpoint(running), "no snapshot was kept")
        saved = running.savepoint()
        for first in range(1_000, 2_000, 100):  # it goes on, and forgets what the savepoint needs
            running.send("in", rows().slice(first, 100))
            for number, batch in running.results(numbered=True, timeout=0.05):
                running.acknowledge(number + batch.num_rows - 1)
    if "://" not in place:
        shutil.rmtree(Path(place) / "a")
    for name in ("b", "c"):  # a savepoint may be used again
        with LocalRuntime(state=tmp_path / "elsewhere", savepoint=saved).launch(numbering(), name=name) as running:
            assert running.next_offset("in") == 1_000
            running.send("in", rows().slice(1_000, 10))
            running.finish()
            found = {
                number: row
                for first, batch in running.results(numbered=True)
                for number, row in enumerate(batch.to_pylist(), first)
            }
        assert found[1_009] == {"x": rows()["x"][1_009].as_py(), "number": 1_009}
        assert sorted(found) == list(range(min(found), 1_010))
        assert min(found) > 100, "it was not repeated from the start"
    assert loaded.count("numbered") == 2
