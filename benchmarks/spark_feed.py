"""Rows from Spark into a join and results back, beside what Spark itself does with the same DataFrame.

The DataFrame is a folder of Parquet files in time order, with columns that the join reads and others that it does not.
Every way of feeding reads the same files. Its measure is Spark's own pass-through: a `mapInArrow` that returns its
batches, written to `noop`. A streaming query also has a measure of its own: the same pass-through in a query with the
same source and the same micro-batches, which pays for Spark's own logs. The join keeps short windows and finds few
pairs, so that it is not what is measured; its results are compared with those that must come before a figure is
printed. All ways have run once, on a few rows, before anything is measured: Spark's Python processes are there then.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from operators import RunningJoin, StreamJoin, TimeWindow
from spark_bridge import connect_spark, feed, local_session
from topology import FlightClient

FILES = 16
FILES_A_MICRO_BATCH = 2
NEEDED = ["id", "ts", "x"]
PAIRS = 1_000
"""How many rows of the fed stream meet a row of the other."""

TRIGGER = "200 milliseconds"
MICRO_BATCH_ROWS = 1_000
FIRST_ROW_SECONDS = 2.0
MICRO_BATCH_SECONDS = 0.5
LONG = 3_600

JOIN = StreamJoin("R", "S", "R.x = S.x", TimeWindow(10), select=["R.id", "S.id"], event_time="ts", out_of_order=1)
ORDERED = StreamJoin("R", "S", "R.x = S.x", TimeWindow(10), select=["R.id", "S.id"], event_time="ts")
# One pair for each row of R, at once: rows of S are there before.
PAIRED = StreamJoin(
    "R", "S", "R.x = S.x", (TimeWindow(10), TimeWindow(1 << 40)), select=["R.id"], event_time="ts", out_of_order=1
)
ALONE = StreamJoin("R", "S", "R.x = S.x", TimeWindow(10), kind="anti", select=["R.id", "R.ts", "R.x"], event_time="ts")


@dataclass(frozen=True)
class Case:
    """One line of the table; figures are rows a second, or seconds if `in_seconds`."""

    name: str
    ours: float
    peers: dict[str, float]
    in_seconds: bool = False

    @property
    def ratio(self) -> float:
        """Above 1 is better than the peer, or than the target."""
        best = max(self.peers.values())
        return best / self.ours if self.in_seconds else self.ours / best

    def row(self) -> dict[str, Any]:
        return {"case": self.name, "ours": self.ours, "peers": self.peers, "ratio": self.ratio}


def run(quick: bool) -> dict[str, Any]:
    """Measure all cases in one session of Spark."""
    rows, rounds = (160_000, 1) if quick else (20_000_000, 2)
    folder = Path(tempfile.mkdtemp(prefix="spark-feed-"))
    spark = local_session("spark-feed", master="local[2]", memory="8g")
    try:
        write_files(folder / "data", rows)
        bench = Bench(spark, folder, rows, rounds)
        print(f"{'case':<46}{'ours':>14}{'peer':>14}{'ratio':>8}")
        found = []
        for case in bench.cases():
            unit = " s" if case.in_seconds else ""
            figures = (case.ours, *case.peers.values())
            shown = (f"{figure:,.3f}{unit}" if unit else f"{figure:,.0f}" for figure in figures)
            print(f"{case.name:<46}{''.join(f'{each:>14}' for each in shown)}{case.ratio:>8.2f}", flush=True)
            found.append(case.row())
    finally:
        spark.stop()
        shutil.rmtree(folder)
    return {"name": "spark-feed", "rows": found}


def write_files(folder: Path, rows: int) -> None:
    """Write rows in time order; ids count them. Spark reads a file as one partition, or as a part of a micro-batch."""
    folder.mkdir()
    for number, (first, end) in enumerate(_ranges(rows)):
        pq.write_table(_rows(np.arange(first, end)), folder / f"{number:04d}.parquet")


def _ranges(rows: int) -> Iterator[tuple[int, int]]:
    cuts = [rows * number // FILES for number in range(FILES + 1)]
    return itertools.pairwise(cuts)


def _rows(ids: Any) -> pa.Table:
    chance = np.random.default_rng(int(ids[0]))
    unused = {f"unused_{number}": chance.random(len(ids)) for number in range(4)}
    return pa.table({"id": ids, "ts": ids, "x": ids % 1_000_003, "name": pa.array(ids).cast(pa.string()), **unused})


class Bench:
    """The cases over one folder of files."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int, rounds: int) -> None:
        self._spark = spark
        self._folder = folder
        self._rows = rows
        self._rounds = rounds
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(1 << 40))
        spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 40))  # one file is one partition
        self._all = spark.read.parquet(str(folder / "data"))
        self._needed = self._all.select(NEEDED)
        # Spark numbers the partitions of a folder by the sizes of its files; those of a union keep their order.
        files = [spark.read.parquet(str(path)).select(NEEDED) for path in sorted((folder / "data").glob("*.parquet"))]
        self._ordered = reduce(DataFrame.unionAll, files)
        self._queries = 0

    def cases(self) -> Iterator[Case]:
        """Measure one after the other, everything in this process and on this machine."""
        self._warm_up()
        passed = {}
        for name, df in (("needed columns", self._needed), ("all columns", self._all)):
            passed[name] = self._rate(partial(self._pass_through, df))
            peers = {"pass-through": passed[name]}
            if df is self._needed:
                yield Case(f"toArrow, {name}", self._rate(partial(self._to_arrow, df)), peers)
            yield Case(f"feed, {name}", self._rate(partial(self._feed, df, self._rows)), peers)
        rate = self._rate(lambda: self._feed(self._ordered, self._rows, through=True))
        yield Case("feed through, needed columns", rate, {"pass-through": passed["needed columns"]})
        # Columns that the join does not read should cost nothing: the measure stays that of the others.
        rate = self._rate(lambda: self._feed(self._all, self._rows))
        yield Case(
            "feed, all columns, beside needed ones", rate, {"pass-through of needed columns": passed["needed columns"]}
        )
        for name, columns in (("needed columns", NEEDED), ("all columns", self._all.columns)):
            rate = self._rate(partial(self._stream, columns))
            yield Case(f"writeStream, {name}", rate, {"pass-through": passed[name]})
            if columns is NEEDED:
                peer = self._rate(partial(self._streamed_pass_through, columns))
                yield Case(f"writeStream, {name}", rate, {"pass-through of a query": peer})
        yield from self._back()
        for name, through in (("feed", False), ("feed through", True)):
            yield Case(
                f"first row of a {name}", self._first_row(through), {"target": FIRST_ROW_SECONDS}, in_seconds=True
            )
        yield Case(f"micro-batch to result, {TRIGGER}", self._latency(), {"target": MICRO_BATCH_SECONDS}, True)

    def _warm_up(self) -> None:
        """Let Python workers run and machine code be compiled, for all ways."""
        few = self._folder / "few"
        few.mkdir()
        pq.write_table(_rows(np.arange(1_000)), few / "0000.parquet")
        self._pass_through(self._all.limit(1_000))
        self._feed(self._needed.limit(1_000), 1_000)
        self._stream(NEEDED, few)
        self._streamed_pass_through(NEEDED, few)

    def _rate(self, seconds: Callable[[], float]) -> float:
        return self._rows / min(seconds() for _ in range(self._rounds))

    def _pass_through(self, df: DataFrame) -> float:
        return _seconds_to_noop(lambda: df.mapInArrow(_unchanged, df.schema))

    def _to_arrow(self, df: DataFrame) -> float:
        start = time.perf_counter()
        table = df.toArrow()
        seconds = time.perf_counter() - start
        _require(table.num_rows == self._rows, f"toArrow gave {table.num_rows} rows")
        return seconds

    def _feed(self, df: DataFrame, rows: int, through: bool = False) -> float:
        with ORDERED.launch() as running:
            expected = _send_others(running, self._rows)
            report = feed(df, running, through=through, presorted=through, progress=False)
            _require(report.rows == rows, f"fed {report.rows} rows")
            _check(running, expected if rows == self._rows else None)
        return report.seconds

    def _stream(self, columns: Iterable[str], folder: Path | None = None) -> float:
        """One query over all files, several micro-batches; the seconds from its start until all rows have entered."""
        with JOIN.launch() as running:
            expected = _send_others(running, self._rows)
            connect_spark(self._spark, running)
            options = {"endpoint": running.endpoint("R").uri, "stream": "R", "feed": "files"}
            start = time.perf_counter()
            self._run_query(self._files(columns, folder).writeStream.format("interlace").options(**options))
            entered = running.next_offset("R", "files")
            seconds = time.perf_counter() - start
            if folder is None:
                _require(entered == self._rows, "rows are missing")
                _check(running, expected)
        return seconds

    def _streamed_pass_through(self, columns: Iterable[str], folder: Path | None = None) -> float:
        """The same query with Spark's own sink."""
        df = self._files(columns, folder)
        start = time.perf_counter()
        self._run_query(df.mapInArrow(_unchanged, df.schema).writeStream.format("noop"))
        return time.perf_counter() - start

    def _files(self, columns: Iterable[str], folder: Path | None) -> DataFrame:
        files = self._spark.readStream.schema(self._all.schema).option("maxFilesPerTrigger", FILES_A_MICRO_BATCH)
        return files.parquet(str(folder or self._folder / "data")).select(*columns)

    def _run_query(self, writer: DataStreamWriter) -> None:
        query = writer.trigger(availableNow=True).option("checkpointLocation", self._checkpoint()).start()
        _require(query.awaitTermination(LONG), "the query did not end")

    def _back(self) -> Iterator[Case]:
        """Read as many results as there are rows, beside the way of an Arrow table of the same rows into Spark."""
        table = self._needed.toArrow()
        with ALONE.launch() as running:
            running.finish("S")
            with FlightClient(running.endpoint("results")) as client:
                client.retain("results")
                feed(self._needed, running, progress=False)
                running.finish()
                while not client.extent("results").complete:
                    time.sleep(0.1)
            connect_spark(self._spark, running)
            options = {"endpoint": running.endpoint("results").uri, "sink": "results"}

            def results() -> DataFrame:
                return self._spark.read.format("interlace").options(**options).load()

            found = results().selectExpr("count(*)", "sum(R_id)", "sum(R_x)").first()
            ids = pc.sum(table["id"]).as_py()
            wanted = (self._rows, ids, pc.sum(table["x"]).as_py())
            _require(found is not None and tuple(found) == wanted, f"results are {found}, not {wanted}")
            ours = self._rate(lambda: _seconds_to_noop(results))
        peer = self._rate(lambda: _seconds_to_noop(lambda: self._spark.createDataFrame(table)))
        yield Case("read results, needed columns", ours, {"createDataFrame": peer})

    def _first_row(self, through: bool) -> float:
        """The median time from the call of `feed` to a result in a program's hands; the session is warm."""
        return statistics.median(self._first_row_once(through) for _ in range(self._rounds))

    def _first_row_once(self, through: bool) -> float:
        """The feed is given up then."""
        failed: list[BaseException] = []
        with ALONE.launch() as running:
            running.finish("S")
            start = time.perf_counter()
            df = self._ordered if through else self._needed
            work = _noting(failed, lambda: feed(df, running, through=through, presorted=through, progress=False))
            feeding = threading.Thread(target=work)
            feeding.start()
            while next(running.results(timeout=1.0), None) is None:
                if failed:
                    raise failed[0]
            seconds = time.perf_counter() - start
        feeding.join()
        return seconds

    def _latency(self) -> float:
        """The median time from a micro-batch's start to its last result, while a query runs with a trigger.

        The last row is left out: a delay of 1 holds it back until the next micro-batch.
        """
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", MICRO_BATCH_ROWS)
        df = source.option("advanceMillisPerBatch", 200).load()
        df = df.selectExpr("value AS id", "value AS ts", f"value % {MICRO_BATCH_ROWS} AS x")
        count = 10 if self._rounds == 1 else 60
        arrived: dict[int, float] = {}
        with PAIRED.launch() as running:
            keys = np.arange(MICRO_BATCH_ROWS)
            running.send("S", pa.table({"id": keys, "ts": np.full(MICRO_BATCH_ROWS, -1), "x": keys}))
            running.finish("S")
            query = feed(df, running, "R", checkpoint=self._checkpoint(), trigger=TRIGGER)
            expected = 0
            for batch in running.results(timeout=LONG):
                ids = batch.column(0).to_numpy()
                _require(bool((ids == np.arange(expected, expected + len(ids))).all()), "results are out of order")
                expected += len(ids)
                while expected >= (len(arrived) + 1) * MICRO_BATCH_ROWS - 1:  # the last row waits out the delay
                    arrived[len(arrived)] = time.time()
                if expected >= count * MICRO_BATCH_ROWS - 1:
                    break
            while len(query.recentProgress) < count - 1 and query.isActive:
                time.sleep(0.05)
            started = {each["batchId"]: _epoch(each["timestamp"]) for each in query.recentProgress}
            query.stop()
        both = [number for number in sorted(arrived) if number in started][2:]
        return statistics.median(arrived[number] - started[number] for number in both)

    def _checkpoint(self) -> str:
        self._queries += 1
        return str(self._folder / f"checkpoint-{self._queries}")


def _unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield from batches


def _seconds_to_noop(made: Callable[[], DataFrame]) -> float:
    start = time.perf_counter()
    made().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def _send_others(running: RunningJoin, rows: int) -> list[int]:
    """Send the rows of S that meet a few of R, and finish S; return the ids of the rows that they meet."""
    ids = np.unique(np.arange(PAIRS) * (rows // PAIRS))
    running.send("S", pa.table({"id": ids, "ts": ids, "x": ids % 1_000_003}))
    running.finish("S")
    return [int(each) for each in ids]


def _check(running: RunningJoin, expected: list[int] | None) -> None:
    """Read all results and compare them; None: read none."""
    if expected is None:
        return
    running.finish()
    found = pa.Table.from_batches(list(running.results()))
    _require(found.column(0).to_pylist() == expected, "other results than those that must come")
    _require(found.column(1).to_pylist() == expected, "other pairs than those that must come")
    _require(running.metrics().total("late") == 0, "rows were late")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _noting(failed: list[BaseException], work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    return run


def _epoch(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()
