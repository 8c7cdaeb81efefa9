"""Rows from Spark into a join and results back, beside what Spark itself does with the same DataFrame.

The DataFrame is a folder of Parquet files in time order, with columns that the join reads and others that it does not.
Every way of feeding reads the same files. Its measure is Spark's own pass-through: a `mapInArrow` that returns its
batches, written to `noop`. The join keeps short windows and finds few pairs, so that it is not what is measured; its
results are compared with those that must come before a figure is printed.
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
    rows, rounds = (160_000, 1) if quick else (20_000_000, 3)
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
        self._pass_through(self._all.limit(1_000))
        self._feed(self._needed.limit(1_000), 1_000)  # Python workers run, and machine code is compiled
        passed = {}
        for name, df in (("needed columns", self._needed), ("all columns", self._all)):
            passed[name] = self._rate(partial(self._pass_through, df))
            arrow = self._rate(partial(self._to_arrow, df))
            peers = {"pass-through": passed[name]}
            yield Case(f"toArrow, {name}", arrow, peers)
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
        yield from self._back()
        for name, through in (("feed", False), ("feed through", True)):
            yield Case(
                f"first row of a {name}", self._first_row(through), {"target": FIRST_ROW_SECONDS}, in_seconds=True
            )
        yield Case(f"micro-batch to result, {TRIGGER}", self._latency(), {"target": MICRO_BATCH_SECONDS}, True)

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

    def _stream(self, columns: Iterable[str]) -> float:
        """One query over all files, several micro-batches; the seconds from its start to its end."""
        files = self._spark.readStream.schema(self._all.schema).option("maxFilesPerTrigger", FILES_A_MICRO_BATCH)
        df = files.parquet(str(self._folder / "data")).select(*columns)
        with JOIN.launch() as running:
            expected = _send_others(running, self._rows)
            connect_spark(self._spark, running)
            options = {"endpoint": running.endpoint("R").uri, "stream": "R", "feed": "files"}
            writer = df.writeStream.format("interlace").options(**options).trigger(availableNow=True)
            start = time.perf_counter()
            query = writer.option("checkpointLocation", self._checkpoint()).start()
            _require(query.awaitTermination(LONG), "the query did not end")
            seconds = time.perf_counter() - start
            _require(running.next_offset("R", "files") == self._rows, "rows are missing")
            _check(running, expected)
        return seconds

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
        with ALONE.launch() as running:
            running.finish("S")
            seen: list[float] = []
            failed: list[BaseException] = []
            start = time.perf_counter()
            df = self._ordered if through else self._needed
            work = _noting(failed, lambda: feed(df, running, through=through, presorted=through, progress=False))
            feeding = threading.Thread(target=work)
            feeding.start()
            while feeding.is_alive() or not seen:  # reads on, so that the feed ends
                if failed:
                    raise failed[0]
                for _ in running.results(timeout=1.0):
                    seen.append(time.perf_counter() - start)
            feeding.join()
        return seen[0]

    def _latency(self) -> float:
        """The median time from a micro-batch's start to its last result, while a query runs with a trigger.

        The last row is left out: a delay of 1 holds it back until the next micro-batch.
        """
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", MICRO_BATCH_ROWS)
        df = source.option("advanceMillisPerBatch", 200).load().selectExpr("value AS id", "value AS ts", "value AS x")
        count = 10 if self._rounds == 1 else 100
        arrived: dict[int, float] = {}
        with StreamJoin(
            "R", "S", "R.x = S.x", TimeWindow(10), kind="anti", select=["R.id"], event_time="ts", out_of_order=1
        ).launch() as running:
            running.finish("S")
            query = feed(df, running, "R", checkpoint=self._checkpoint(), trigger=TRIGGER)
            expected = 0
            for batch in running.results(timeout=LONG):
                ids = batch.column(0).to_numpy()
                _require(bool((ids == np.arange(expected, expected + len(ids))).all()), "results are out of order")
                expected += len(ids)
                while expected >= (len(arrived) + 1) * MICRO_BATCH_ROWS - 1:  # the last row waits out the delay
                    arrived[len(arrived)] = time.time()
                if expected >= count * MICRO_BATCH_ROWS:
                    break
            started = {each["batchId"]: _epoch(each["timestamp"]) for each in query.recentProgress}
            query.stop()
        both = [number for number in sorted(arrived) if number in started][2:-1]
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
