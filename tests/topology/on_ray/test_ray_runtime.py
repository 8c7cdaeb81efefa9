"""Topologies whose tasks are Ray actors: the same results as in one process, and a clean end whatever happens."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import ray

from examples.word_count import count, word_count
from tests.topology.on_ray.programs import processes
from tests.topology.waiting import LONG, repeatedly, wait_for
from topology import (
    DEFAULT_STREAM,
    AcknowledgedError,
    All,
    AuthenticationError,
    Batch,
    Bolt,
    Custom,
    Direct,
    Emit,
    Endpoint,
    Fields,
    FlightClient,
    Global,
    Grouping,
    Input,
    InputError,
    LocalOrShuffle,
    LocalRuntime,
    OffsetGapError,
    Origin,
    OutOfOrderError,
    PartialKey,
    RayRuntime,
    RunningTopology,
    SchemaError,
    Shuffle,
    SinkHasReaderError,
    Spout,
    SpoutTask,
    State,
    StoppedError,
    TakenOverError,
    Task,
    TaskContext,
    TaskError,
    Topology,
    TopologyBuilder,
    Workers,
    attach,
)
from topology.graph.components import PassOn
from topology.on_ray import running as ray_topology

pytestmark = pytest.mark.usefixtures("ray_cluster")
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Range(Spout):
    """Numbers from 0 up, each task its own share."""

    stop: int
    streams: tuple[str, ...] = (DEFAULT_STREAM,)

    @property
    def outputs(self) -> dict[str, pa.Schema | None]:
        return dict.fromkeys(self.streams)

    def build(self, context: TaskContext) -> SpoutTask:
        return RangeTask(range(context.task, self.stop, context.parallelism), self.streams)


class RangeTask(SpoutTask):
    def __init__(self, values: range, streams: tuple[str, ...]) -> None:
        self._values = values
        self._streams = streams

    def batches(self) -> Iterator[Emit]:
        for start in range(0, len(self._values), 10):
            for stream in self._streams:
                yield Emit(Batch(stream, numbers(*self._values[start : start + 10])), to=start // 10 % 2)


@dataclass(frozen=True)
class Marked(Bolt):
    """Adds the task that each number went to; fails at the number `fails_at`."""

    name: str
    fails_at: int = -1
    seconds: float = 0.0

    def build(self, context: TaskContext) -> Task:
        if self.name == "unbuildable":
            raise OSError("no such file")
        return MarkedTask(self, context.task)


class MarkedTask(PassOn):
    def __init__(self, description: Marked, task: int) -> None:
        self._description = description
        self._task = task

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        values = batch.rows.column("n").to_pylist()
        time.sleep(self._description.seconds)
        if self._description.fails_at in values:
            raise ValueError(f"cannot stand {self._description.fails_at}")
        names = [f"{self._description.name}[{self._task}] {batch.stream}"] * len(values)
        yield Emit(Batch(DEFAULT_STREAM, pa.record_batch({"n": values, "task": names}), born=batch.born))


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def second_half(rows: pa.RecordBatch, tasks: int) -> list[int]:
    return [int(value >= 50) for value in rows.column("n").to_pylist()]


def pipeline(bolt: Bolt, parallelism: int = 1) -> Topology:
    builder = TopologyBuilder("pipeline")
    builder.input("in")
    builder.bolt("bolt", bolt, parallelism).fields_grouping("in", "n")
    builder.sink().shuffle_grouping("bolt")
    return builder.build()


def straight(source: Input | None = None) -> Topology:
    builder = TopologyBuilder("straight")
    builder.input("in", source)
    builder.sink().shuffle_grouping("in")
    return builder.build()


def read(running: RunningTopology) -> list[int]:
    return [value for rows in running.results() for value in rows.column("n").to_pylist()]


def worker(running: RunningTopology, name: str) -> ray.actor.ActorHandle:
    """The actor of one worker."""
    return ray.get_actor(f"{running.name}/{name}", "interlace")


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


# rows and results


def test_word_count_gives_the_same_on_both_runtimes() -> None:
    texts = {f"file {number}": "the quick fox\nand the dog\n" * (number + 1) + "naïve the" for number in range(3)}
    local = count(word_count(2), texts, LocalRuntime())
    on_ray = count(word_count(2), texts, RayRuntime())
    assert on_ray == local == Counter({"the": 15, "quick": 6, "fox": 6, "and": 6, "dog": 6, "naïve": 3})


GROUPINGS: dict[str, Grouping] = {
    "shuffle": Shuffle(),
    "fields": Fields(("n",)),
    "partial": PartialKey(("n",)),
    "all": All(),
    "global": Global(),
    "direct": Direct(),
    "near": LocalOrShuffle(),
    "custom": Custom(second_half),
}


def test_every_grouping_sends_rows_where_it_does_locally() -> None:
    builder = TopologyBuilder("groupings")
    builder.spout("numbers", Range(100, tuple(GROUPINGS)), parallelism=2)
    marked = builder.bolt("marked", Marked("m"), 2)
    for stream, grouping in GROUPINGS.items():
        marked.grouping("numbers", grouping, stream)
    builder.sink().shuffle_grouping("marked")

    def rows(runtime: LocalRuntime | RayRuntime) -> Counter[tuple[int, str]]:
        with runtime.launch(builder.build()) as running:
            return Counter((row["n"], row["task"]) for part in running.results() for row in part.to_pylist())

    found = rows(RayRuntime(placement=Workers(3)))
    assert found == rows(LocalRuntime())
    by_stream = Counter(dict.fromkeys(GROUPINGS, 0))
    for (_, task), times in found.items():
        by_stream[task.split(" ")[1]] += times
    assert by_stream == Counter({stream: 200 if stream == "all" else 100 for stream in GROUPINGS})


def test_results_come_while_data_is_still_moving_and_stop_at_a_timeout() -> None:
    with RayRuntime().launch(pipeline(Marked("m"))) as running:
        results = running.results(timeout=LONG)
        for value in range(5):
            running.send("in", numbers(value))
            assert next(results).column("n").to_pylist() == [value]
        results.close()
        assert [rows.column("n").to_pylist() for rows in running.results(timeout=0.05)] == [[4]], "not acknowledged"
        assert list(running.results(timeout=0.05)) == []
        running.send("in", pa.Table.from_batches([numbers(5), numbers(6, 7)]), source="another")
        running.finish()
        assert read(running) == [5, 6, 7]
        assert list(running.results()) == []
        metrics = running.metrics()
        assert [task.rows_in for task in metrics.tasks] == [8, 8, 8]
        assert metrics.latency(50)[0] > 0
    assert [task.rows_out for task in running.metrics().of("bolt")] == [8]


def test_wrong_rows_are_refused_and_change_nothing() -> None:
    source = Input(schema=pa.schema([("n", pa.int64())]), event_time="n")
    with RayRuntime(placement=Workers(1)).launch(straight(source)) as running:
        running.open("in", "in", "b")
        running.send("in", numbers(5))
        with pytest.raises(OutOfOrderError, match="'n' goes backwards at row 1 \\(5 is followed by 4\\)"):
            running.send("in", numbers(4))
            running.flush()
        with pytest.raises(SchemaError, match="column 'n' is missing; column 'x' is not expected"):
            running.send("in", pa.record_batch({"x": [1]}))
        with pytest.raises(SchemaError):
            running.pin("in", pa.schema([("x", pa.int64())]))
        with pytest.raises(InputError, match="has no source 'c'"):
            running.finish("in", "c")
        running.pin("in", pa.schema([("n", pa.int64())]))
        running.send("in", numbers(6))
        running.finish("in", "b")
        running.finish()
        assert read(running) == [5, 6]


def test_other_processes_stage_commit_and_read_over_flight() -> None:
    with RayRuntime(placement=Workers(1)).launch(straight()) as running:
        write, results = running.endpoint("in"), running.endpoint("results")
        with FlightClient(write) as writer, FlightClient(results) as reader:
            assert writer.stage("in", "p0", "1", [numbers(1, 2), numbers(3)]) == 3
            assert writer.stage("in", "p0", "2", [numbers(1, 2)]) == 2
            assert writer.send("in", "live", numbers(10)) == 1
            with pytest.raises(AuthenticationError, match="does not grant the right to control"):
                writer.commit("in", "p0", "1", 3)
            running.commit("in", "p0", "1", 3)
            running.commit("in", "p0", "1", 3)
            with pytest.raises(InputError, match="attempt '2' cannot be committed"):
                running.commit("in", "p0", "2", 2)
            running.finish()
            found = [value for rows in reader.results("results") for value in rows.column("n").to_pylist()]
        assert sorted(found) == [1, 2, 3, 10]
        for guess in ("guess", results.token):
            with FlightClient(Endpoint(write.location, guess)) as stranger, pytest.raises(AuthenticationError):
                stranger.send("in", "a", numbers(1))


def test_a_slow_reader_slows_the_sender_and_nothing_is_lost() -> None:
    edge, rows_per_batch, batches = 200_000, 10_000, 1000
    with RayRuntime(edge_bytes=edge).launch(pipeline(Marked("m"))) as running:
        rows = numbers(*range(rows_per_batch))
        sent = 0

        def send() -> None:
            nonlocal sent
            for _ in range(batches):
                running.send("in", rows)
                sent += 1
            running.finish()

        sender = threading.Thread(target=send)
        sender.start()
        before = -1
        while sent != before:  # until nothing moves any more
            before = sent
            sender.join(0.7)
        assert sender.is_alive(), "80 MB went into edges of 200 kB"
        assert sent * rows.nbytes < 60_000_000
        waiting = [task.waiting_bytes for task in running.metrics().tasks]
        assert max(waiting) <= edge + 2 * rows.nbytes
        total = Counter[int]()
        for part in running.results():
            total[part.num_rows] += 1
        sender.join()
        assert total == Counter({rows_per_batch: batches})


# failures


def test_an_error_in_a_task_is_reported_with_its_place_and_traceback() -> None:
    with RayRuntime(placement=Workers(2)).launch(pipeline(Marked("m", fails_at=13), parallelism=2)) as running:
        with pytest.raises(TaskError) as failed:
            for _ in repeatedly():
                running.send("in", numbers(13))
        error = failed.value
        assert error.component == "bolt"
        assert error.task in (0, 1)
        assert error.traceback_text.startswith("at rows from 0 on of in from in:\nTraceback")
        assert "in on_batch" in error.traceback_text
        assert "topology/task_loop.py" not in error.traceback_text
        assert "ValueError: cannot stand 13" in str(error)
        with pytest.raises(TaskError):
            running.finish()
        with pytest.raises(TaskError):
            list(running.results())
        with pytest.raises(TaskError):
            running.send("in", numbers(1))


def test_an_error_in_a_task_is_raised_by_stop_if_it_was_not_raised_before() -> None:
    running = RayRuntime(placement=Workers(1)).launch(pipeline(Marked("m", fails_at=13)))
    running.send("in", numbers(13))
    wait_for(lambda: running.status().state is State.FAILED)
    with pytest.raises(TaskError, match="cannot stand 13"):
        running.stop()
    running.stop()


def test_a_component_that_cannot_be_built_is_reported_by_launch() -> None:
    with pytest.raises(TaskError, match="component 'bolt', task 0, failed: OSError: no such file"):
        RayRuntime(placement=Workers(1)).launch(pipeline(Marked("unbuildable")))


def test_a_killed_process_is_reported_with_its_name() -> None:
    with RayRuntime().launch(pipeline(Marked("m"), parallelism=2)) as running:
        running.send("in", numbers(*range(10)))
        assert next(running.results(timeout=LONG)).num_rows > 0
        ray.kill(worker(running, "bolt/1"))
        with pytest.raises(TaskError, match=r"the process of component 'bolt', task 1, on node .*, died") as died:
            for _ in repeatedly():
                running.send("in", numbers(*range(10)))
                next(running.results(timeout=0.01), None)
        assert (died.value.component, died.value.task) == ("bolt", 1)


def test_a_reader_gets_the_error_of_a_killed_process() -> None:
    running = RayRuntime().launch(pipeline(Marked("m")))
    threading.Timer(0.3, lambda: ray.kill(worker(running, "results/0"))).start()
    with pytest.raises(TaskError, match=r"the process of component 'results', task 0, on node .*, died"):
        list(running.results())
    running.stop()


def test_readers_and_offsets_across_handles() -> None:
    """Two handles of one topology: numbers, take-over, acknowledgements and offsets mean the same in both."""
    with RayRuntime(placement=Workers(2)).launch(pipeline(Marked("m"))) as running:
        assert running.send("in", numbers(*range(10)), "a") == 10
        assert running.send("in", numbers(*range(8, 14)), "a", offset=8) == 14
        with pytest.raises(OffsetGapError, match="from 14 to 19 are missing"):
            running.send("in", numbers(20), "a", offset=20)
        first = running.results(timeout=LONG)
        found = next(first).column("n").to_pylist()
        with attach(running.name) as other:
            assert other.next_offset("in", "a") == 14
            assert other.send("in", numbers(*range(12, 20)), "a", offset=12) == 20
            with pytest.raises(SinkHasReaderError):
                other.results()
            second = other.results(numbered=True, take_over=True)
            with pytest.raises(TakenOverError):
                for rows in first:
                    found += rows.column("n").to_pylist()
            numbered: dict[int, int] = {}
            while len(numbered) < 20:
                number, rows = next(second)
                numbered |= dict(enumerate(rows.column("n").to_pylist(), number))
            second.close()
            other.acknowledge(9)
            with pytest.raises(AcknowledgedError, match="the first that is kept is 10"):
                other.results(after=3)
        running.finish()
        assert numbered == dict(enumerate(range(20)))
        assert read(running) == list(range(10, 20))
        assert read(running) == []
    assert read(running) == [], "everything had been read before it was stopped"


def test_stop_raises_in_a_reader_that_waits() -> None:
    running = RayRuntime(placement=Workers(1)).launch(pipeline(Marked("m")))
    threading.Timer(0.5, running.stop).start()
    with pytest.raises(StoppedError, match="stopped before all results had been read"):
        list(running.results())
    with pytest.raises(StoppedError):
        running.results()


# endings


def test_stop_leaves_no_processes_and_no_ports() -> None:
    running = RayRuntime(edge_bytes=10_000, placement="per-task").launch(straight())
    titles = {title.split()[0].split(".")[0] for title in processes("ray::straight/").values()}
    assert titles == {"ray::straight/in/0", "ray::straight/results/0", "ray::straight/controller"}
    host, port = running.endpoint("in").location.removeprefix("grpc://").split(":")
    outcomes: list[BaseException] = []

    def send() -> None:
        try:
            while True:
                running.send("in", numbers(*range(1000)))
        except BaseException as error:
            outcomes.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    sender.join(0.5)
    running.stop()
    running.stop()
    sender.join(LONG)
    assert [type(error) for error in outcomes] == [StoppedError]
    wait_for(lambda: not processes("ray::straight/") and not _listens(host, int(port)), "a process outlived stop()")
    for call in (lambda: running.send("in", numbers(1)), running.finish, lambda: running.pin("in", pa.schema([]))):
        with pytest.raises(StoppedError):
            call()
    with pytest.raises(StoppedError):  # part of a result must not look whole
        list(running.results())


def test_ctrl_c_reaches_a_sender_that_waits(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(ray_topology, "UNREAD_WARNING_SECONDS", 0.2)
    with RayRuntime(edge_bytes=10_000).launch(straight()) as running:
        rows = pa.record_batch({"n": np.arange(10_000)})

        def interrupt() -> None:
            wait_for(lambda: "waits for room; read results() in another thread" in caplog.text)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt), caplog.at_level(logging.WARNING, logger="interlace"):
            while True:
                running.send("in", rows)


PROGRAM = """
import sys
import pyarrow as pa
from topology import MapBatches, RayRuntime, TopologyBuilder

def doubled(rows):
    return pa.record_batch({"n": [2 * value for value in rows.column("n").to_pylist()]})

builder = TopologyBuilder("program")
builder.input("in")
builder.bolt("double", MapBatches(doubled)).shuffle_grouping("in")
builder.sink().shuffle_grouping("double")
running = RayRuntime(address=(sys.argv[1:] or [None])[0]).launch(builder.build())
running.send("in", pa.record_batch({"n": [1, 2]}))
print(next(running.results()).column("n").to_pylist(), flush=True)
"""


def run_program(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it from another directory, with the checkout on the path; it defines its components itself."""
    (directory / "program.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-W", "error", str(directory / "program.py"), *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


def test_a_program_that_forgets_to_stop_ends_with_its_own_cluster(tmp_path: Path) -> None:
    finished = run_program(tmp_path)
    assert (finished.stdout, finished.stderr, finished.returncode) == ("[2, 4]\n", "", 0)
    wait_for(lambda: not processes("ray::program/"), "a task outlived the program that forgot to stop it")


def test_a_program_joins_a_cluster_whose_workers_do_not_know_its_modules(tmp_path: Path) -> None:
    finished = run_program(tmp_path, ray.get_runtime_context().gcs_address)
    assert (finished.stdout, finished.stderr, finished.returncode) == ("[2, 4]\n", "", 0)
    wait_for(lambda: not processes("ray::program/"), "a task outlived the program that forgot to stop it")
