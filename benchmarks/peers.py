"""The alternatives to a streaming inequality join: an engine's own join, re-run per micro-batch.

Each class keeps a count window per side and, for each micro-batch of one side, joins it with the other
side's live rows by the engine's inequality join, then appends it to its own side and drops what has
expired. One batch belongs to one side, so it sees a constant window and needs no filter on positions.
The query is Q1 of SPO-Join: `R.power < S.power AND R.cool > S.cool`; the answer is the pairs of ids.

The peers are tuned as far as their public interfaces allow. Ways to keep the window were run in turns on
the same batches (window of a million, batches of 1,000 to 100,000, noise 0.05 and 5, one run on a busy
machine, hence CPU time), and the cheapest was taken:
- DuckDB: window and batch are registered Arrow tables, and the window is re-sorted by power whenever a
  slide expires, since IEJoin sorts nearly sorted input faster. Without the sort: 8 to 36 % dearer. A
  native table with INSERT and DELETE: 15 to 38 % dearer, except 4 % cheaper at noise 5, batch 100,000.
- Polars: the window is kept sorted by cool with `merge_sorted`, which saves a sort per join. Sorted by
  power: 14 to 43 % dearer, except 2 % cheaper at noise 5, batch 100,000; unsorted: 52 to 113 % dearer.
Tried at noise 0.05 with batches of 1,000 and 10,000 only, by the clock: raising DuckDB's
merge_join_threshold to keep it from IEJoin (10 to 100 times slower), the window left of `join_where`
instead of the batch (3 to 4 times slower), Polars' streaming engine (no faster).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

import pyarrow as pa
import pyarrow.compute as pc

# Polars fixes its thread pool when it is first imported: both peers get two threads, as we do.
THREADS = 2
os.environ.setdefault("POLARS_MAX_THREADS", str(THREADS))

import duckdb  # noqa: E402
import polars as pl  # noqa: E402

R, S = 0, 1


class PeerWindow(ABC):
    """Two count windows of `size` rows and slide `slide`, and one engine's join between them.

    Tables have the columns id, power and cool, and a row's id is its position, which spares the peers a
    column; results have R.id and S.id, in no particular order.
    """

    name: str

    def __init__(self, size: int, slide: int) -> None:
        self._size = size
        self._slide = slide
        self._rows = [0, 0]  # rows of each side so far
        self._first = [0, 0]  # the oldest live position of each side

    def fill(self, side: int, rows: pa.Table) -> None:
        """Append rows without joining them: the state in which a measurement begins."""
        if rows.num_rows and rows["id"][0].as_py() != self._rows[side]:
            raise ValueError(f"ids must be positions: expected {self._rows[side]}, got {rows['id'][0]}")
        self._rows[side] += rows.num_rows
        # position >= max(0, ceil((n - size) / slide) * slide) stays; it moves once per slide.
        first = max(0, -((self._size - self._rows[side]) // self._slide) * self._slide)
        expired, self._first[side] = first > self._first[side], first
        self._append(side, rows, first if expired else None)

    def step(self, side: int, batch: pa.Table) -> pa.Table:
        """Join one micro-batch of `side` with the other side's window, then let it enter its own."""
        result = self._join(side, batch)
        self.fill(side, batch)
        return result

    @abstractmethod
    def _join(self, side: int, batch: pa.Table) -> pa.Table:
        """Pairs of the batch with the live rows of the other side."""

    @abstractmethod
    def _append(self, side: int, rows: pa.Table, first: int | None) -> None:
        """Take in rows; when `first` is given, positions below it have expired."""


class DuckDBWindow(PeerWindow):
    """DuckDB's IEJoin over registered Arrow tables."""

    name = "duckdb"
    _QUERIES = (
        'SELECT b.id AS "R.id", w.id AS "S.id" FROM batch b, {window} w WHERE b.power < w.power AND b.cool > w.cool',
        'SELECT w.id AS "R.id", b.id AS "S.id" FROM batch b, {window} w WHERE w.power < b.power AND w.cool > b.cool',
    )
    _MOST_CHUNKS = 64  # scanning an Arrow table costs a little per chunk

    def __init__(self, size: int, slide: int) -> None:
        super().__init__(size, slide)
        self._con = duckdb.connect(config={"threads": THREADS})
        empty = pa.table(
            {
                "id": pa.array([], pa.int64()),
                "power": pa.array([], pa.float64()),
                "cool": pa.array([], pa.float64()),
            }
        )
        self._windows = [empty, empty]
        for side in (R, S):
            self._con.register(f"window_{side}", empty)

    def _join(self, side: int, batch: pa.Table) -> pa.Table:
        self._con.register("batch", batch)
        return self._con.sql(self._QUERIES[side].format(window=f"window_{1 - side}")).to_arrow_table()

    def _append(self, side: int, rows: pa.Table, first: int | None) -> None:
        window = pa.concat_tables([self._windows[side], rows])
        if first is not None:
            window = window.filter(pc.greater_equal(window["id"], first))
            self._con.register("unsorted", window)
            window = self._con.sql("SELECT * FROM unsorted ORDER BY power").to_arrow_table()
            self._con.unregister("unsorted")
            window = window.combine_chunks()
        elif window["id"].num_chunks > self._MOST_CHUNKS:
            window = window.combine_chunks()
        self._windows[side] = window
        self._con.register(f"window_{side}", window)


class PolarsWindow(PeerWindow):
    """Polars' `join_where` over a window that stays sorted."""

    name = "polars"
    _SORTED_BY = "cool"
    _CONDITIONS = (
        (pl.col("power") < pl.col("power_w"), pl.col("cool") > pl.col("cool_w")),
        (pl.col("power") > pl.col("power_w"), pl.col("cool") < pl.col("cool_w")),
    )
    _NAMES = (("id", "id_w"), ("id_w", "id"))

    def __init__(self, size: int, slide: int) -> None:
        super().__init__(size, slide)
        schema = {"id": pl.Int64, "power": pl.Float64, "cool": pl.Float64}
        empty = pl.DataFrame(schema=schema).sort(self._SORTED_BY)
        self._windows = [empty, empty]

    def _join(self, side: int, batch: pa.Table) -> pa.Table:
        frame = pl.DataFrame(pl.from_arrow(batch))
        joined = frame.lazy().join_where(self._windows[1 - side].lazy(), *self._CONDITIONS[side], suffix="_w")
        on_left, on_right = self._NAMES[side]
        return joined.select(**{"R.id": pl.col(on_left), "S.id": pl.col(on_right)}).collect().to_arrow()

    def _append(self, side: int, rows: pa.Table, first: int | None) -> None:
        frame = pl.DataFrame(pl.from_arrow(rows)).sort(self._SORTED_BY)
        window = self._windows[side].merge_sorted(frame, self._SORTED_BY)
        if first is not None:
            window = window.filter(pl.col("id") >= first)
        self._windows[side] = window


PEERS: tuple[type[PeerWindow], ...] = (DuckDBWindow, PolarsWindow)
