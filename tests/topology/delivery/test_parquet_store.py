"""Parquet files of results: each row once, in whole files, after crashes at every call and beside zombies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.s3_server import below, s3_server
from topology import LocalRuntime, ParquetStore, StoreError, TopologyBuilder, deliver
from topology.delivery.result_files import DirectoryFiles, ResultFiles, open_files

ROWS = 23
PER_FILE = 5


class CrashError(Exception):
    """The process ends here."""


class CrashingFiles(ResultFiles):
    """Ends the process in the middle of a call: before it has done its work, or right after."""

    def __init__(self, files: dict[str, pa.Buffer], crash_in: int, after: bool) -> None:
        self.files = files
        self.left = crash_in
        self.after = after

    def put(self, name: str, content: pa.Buffer) -> None:
        self._call(lambda: self.files.update({name: content}))

    def get(self, name: str) -> pa.Buffer:
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def names(self) -> list[str]:
        return list(self.files)

    def delete(self, name: str) -> None:
        self._call(lambda: self.files.pop(name, None))

    def _call(self, work: object) -> None:
        crashing = self.left == 0
        self.left -= 1
        if not crashing or self.after:
            work()  # type: ignore[operator]
        if crashing:
            raise CrashError


def numbered(first: int, count: int) -> pa.RecordBatch:
    values = list(range(first, first + count))
    return pa.record_batch({"x": pa.array(values, pa.int32()), "text": pa.array(map(str, values)).dictionary_encode()})


def write(store: ParquetStore, chance: Random, upto: int = ROWS) -> None:
    """Store all rows from where the store is, in batches of any size, some of them again."""
    at = store.next_number()
    while at < upto:
        first = max(0, at - chance.randint(0, 2))
        count = min(upto - first, at - first + chance.randint(1, 8))
        store.store(first, numbered(first, count))
        at = max(at, first + count)
    if upto == ROWS:
        store.finish()


def stored(files: dict[str, pa.Buffer]) -> list[int]:
    """The rows that a reader of the directory sees."""
    parts = sorted(name for name in files if not name.startswith("_"))
    return [x for name in parts for x in pq.read_table(pa.BufferReader(files[name]))["x"].to_pylist()]


@pytest.mark.parametrize("after", [False, True])
def test_each_row_is_stored_once_after_a_crash_at_any_call(after: bool) -> None:
    for crash_in in range(60):
        files: dict[str, pa.Buffer] = {}
        chance = Random(crash_in)
        for attempt in range(100):
            try:
                write(ParquetStore(CrashingFiles(files, crash_in if attempt < 4 else -1, after), PER_FILE), chance)
                break
            except CrashError:
                assert stored(files) == list(range(len(stored(files)))), "a prefix, each row once"
        assert stored(files) == list(range(ROWS))
        assert not [name for name in files if name.startswith("_staged")]
        manifest = json.loads(files["_manifest.json"].to_pybytes())
        assert json.loads(files["_complete.json"].to_pybytes())["rows"] == ROWS
        assert [(part["first"], part["rows"]) for part in manifest["parts"]] == [
            (0, 5),
            (5, 5),
            (10, 5),
            (15, 5),
            (20, 3),
        ]


@pytest.mark.parametrize("seed", range(60))
def test_a_process_that_was_replaced_and_wakes_up_changes_nothing(seed: int) -> None:
    chance = Random(seed)
    files: dict[str, pa.Buffer] = {}
    per_file = chance.choice([5, 12])
    writers = [ParquetStore(CrashingFiles(files, -1, False), per_file) for _ in range(2)]
    at = [store.next_number() for store in writers]
    while min(at) < ROWS:
        who = chance.randrange(2)
        if chance.random() < 0.2:  # another process takes its place
            writers[who] = ParquetStore(CrashingFiles(files, -1, False), per_file)
            at[who] = writers[who].next_number()
        count = min(ROWS - at[who], chance.randint(1, 4))
        if count:
            writers[who].store(at[who], numbered(at[who], count))
        at[who] += count
        assert stored(files) == list(range(len(stored(files))))
    for store in writers:
        store.finish()
    last = ParquetStore(CrashingFiles(files, -1, False), per_file)
    assert last.next_number() == ROWS
    last.finish()
    assert stored(files) == list(range(ROWS))


def test_one_that_wakes_up_after_the_last_part_takes_nothing_back() -> None:
    files: dict[str, pa.Buffer] = {}
    zombie, store = (ParquetStore(CrashingFiles(files, -1, False), 5) for _ in range(2))
    zombie.next_number()
    store.next_number()
    store.store(0, numbered(0, ROWS))
    store.finish()
    zombie.store(0, numbered(0, 5))  # it closes the first part, and lists that alone
    assert len(json.loads(files["_manifest.json"].to_pybytes())["parts"]) == 1
    assert json.loads(files["_complete.json"].to_pybytes())["rows"] == ROWS
    last = ParquetStore(CrashingFiles(files, -1, False), 5)
    assert last.next_number() == ROWS
    assert stored(files) == list(range(ROWS))


def test_two_that_write_one_file_at_once_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 7)  # as on two machines that share the directory
    names: list[Path] = []
    replace = os.replace

    def noted(old: Path, new: Path) -> None:
        names.append(old)
        replace(old, new)

    monkeypatch.setattr(os, "replace", noted)
    for _ in range(2):
        DirectoryFiles(tmp_path).put("part", pa.py_buffer(b"rows"))
    assert len(set(names)) == 2


def test_rows_that_are_missing_are_refused(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    store.next_number()
    with pytest.raises(StoreError, match="those from 0 on are missing"):
        store.store(3, numbered(3, 2))


def test_files_of_another_size_are_refused(tmp_path: Path) -> None:
    ParquetStore(tmp_path, 10).next_number()
    with pytest.raises(StoreError, match="rows_per_file=10"):
        ParquetStore(tmp_path, 20).next_number()


def test_a_file_appears_whole_and_survives(tmp_path: Path) -> None:
    files = DirectoryFiles(tmp_path / "new")
    files.put("a", pa.py_buffer(b"first"))
    files.put("a", pa.py_buffer(b"second"))
    (tmp_path / "new" / ".unfinished-1-b").write_bytes(b"torn")
    assert files.names() == ["a"]
    assert files.get("a").to_pybytes() == b"second"
    files.delete("a")
    files.delete("a")
    assert files.names() == []


def deliver_in_two_lives(place: str | Path, state: Path) -> list[int]:
    builder = TopologyBuilder("numbers")
    builder.input("in")
    builder.sink().global_grouping("in")
    topology = builder.build()
    for life in range(2):
        with LocalRuntime(state=state).launch(topology) as running:
            for start in range(running.next_offset("in", "in"), (life + 1) * 500, 50):
                running.send("in", pa.table({"x": list(range(start, start + 50))}))
            if life == 1:
                running.finish()
            count = deliver(running, ParquetStore(place, 300), timeout=None if life == 1 else 0.5)
            assert count == (life + 1) * 500
    files = open_files(place)
    parts = sorted(name for name in files.names() if name.startswith("part-"))
    return [x for name in parts for x in pq.read_table(pa.BufferReader(files.get(name)))["x"].to_pylist()]


def test_results_of_a_topology_are_delivered_once(tmp_path: Path) -> None:
    assert deliver_in_two_lives(tmp_path / "table", tmp_path / "state") == list(range(1_000))
    assert pq.read_table(tmp_path / "table").num_rows == 1_000


def test_results_are_delivered_to_a_bucket(tmp_path: Path) -> None:
    with s3_server() as uri:
        assert deliver_in_two_lives(below(uri, "table"), tmp_path / "state") == list(range(1_000))
