"""A second opinion on the oracle: the same law written in SQL and run by DuckDB.

The merge, the positions, the windows and the order are each an SQL expression over the raw
sources, so that nothing but the description of the predicate is shared with the oracle. Quick
enough for tens of thousands of rows per side.

Limits: DuckDB compares an integer with a double as doubles, so integers beyond 2^53 must not be
compared with floats here; a predicate must be a list of terms, not a callable; integer or timestamp
event times need windows in whole units.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import duckdb
import pyarrow as pa

from tests.oracle import Band, Comparison, Count, Linear, Number, Sources, Term, Time, Window

_POSITIONS = ("left_pos", "right_pos", "seq")


def _literal(value: Number) -> str:
    # An exponent makes DuckDB read a double; without it 0.1 would be an exact decimal.
    return f"({value!r}::HUGEINT)" if isinstance(value, int) else f"('{value!r}'::DOUBLE)"


def _expression(expression: Linear, alias: str, table: pa.Table) -> str:
    integer = pa.types.is_integer(table.schema.field(expression.column).type)
    # HUGEINT: sums and products of 64-bit integers never overflow.
    sql = f'{alias}."{expression.column}"::{"HUGEINT" if integer else "DOUBLE"}'
    for sign, number in (("*", expression.scale), ("+", expression.offset)):
        if number is not None:
            if isinstance(number, float):
                sql = f"({sql})::DOUBLE"
            sql = f"({sql} {sign} {_literal(number)})"
    return sql


def _term(term: Term, left: pa.Table, right: pa.Table) -> str:
    x, y = _expression(term.left, "l", left), _expression(term.right, "r", right)
    # DuckDB orders NaN above everything and equal to itself; the law lets it match nothing.
    known = f"NOT isnan(({x})::DOUBLE) AND NOT isnan(({y})::DOUBLE)"
    if isinstance(term, Comparison):
        return f"{known} AND {x} {term.op} {y}"
    assert isinstance(term, Band)
    difference = f"abs({x} - {y})"
    return f"{known} AND NOT isnan(({difference})::DOUBLE) AND {difference} {term.op} {_literal(term.width)}"


def _units(value: Number | timedelta) -> str:
    if isinstance(value, timedelta):  # event times are microseconds here
        return str(value // timedelta(microseconds=1))
    return repr(value) if isinstance(value, int) else f"'{value!r}'::DOUBLE"


def live_sql(window: Window, now: str, candidate: str, n: str) -> str:
    """The condition that row `candidate` is live for row `now`, which has `n` rows before it."""
    if isinstance(window, Count):
        size, slide = window.size, window.slide
        # ceil(a / s) for a of any sign, in integers: -floor(-a / s); only a > 0 matters here.
        return (
            f"{candidate}.pos >= CASE WHEN {n} > {size} "
            f"THEN (({n} - {size} + {slide - 1}) // {slide}) * {slide} ELSE 0 END"
        )
    assert isinstance(window, Time)
    size_sql = _units(window.size)
    if window.slide is None:
        return f"{now}.ts - {candidate}.ts <= {size_sql}"
    slide_sql, start = _units(window.slide), f"({now}.ts - {size_sql})"
    if "DOUBLE" in slide_sql or "DOUBLE" in size_sql:
        return f"{candidate}.ts >= (floor({start} / {slide_sql}) + 1) * {slide_sql}"
    # Rounding an integer down to a multiple: SQL's remainder has the sign of the dividend.
    remainder = f"(({start} % {slide_sql} + {slide_sql}) % {slide_sql})"
    return f"{candidate}.ts >= {start} - {remainder} + {slide_sql}"


def merge_sources(con: duckdb.DuckDBPyConnection, sources: Sources, event_time: str | None) -> None:
    """Table `merged`: every accepted row's stream, source, row number, ts, seq and position."""
    parts: list[str] = []
    for stream, of_stream in sources.items():
        for source, table in of_stream.items():
            name = f"source {len(parts)}"
            rows = pa.array(range(table.num_rows), pa.int64())
            times = rows if event_time is None else table[event_time]
            if pa.types.is_timestamp(times.type):
                times = times.cast(pa.timestamp("us")).cast(pa.int64())
            # HUGEINT again: the difference of two 64-bit times may need 65 bits.
            kind = "HUGEINT" if pa.types.is_integer(times.type) else "DOUBLE"
            con.register(name, pa.table({"row": rows, "ts": times}))
            parts.append(
                f"SELECT '{stream}' AS stream, '{source}' AS source, \"row\", ts::{kind} AS ts "
                f'FROM "{name}" WHERE ts IS NOT NULL AND NOT isnan(ts::DOUBLE)'
            )
    con.execute(
        "CREATE TABLE merged AS SELECT *, "
        "row_number() OVER (PARTITION BY stream ORDER BY seq) - 1 AS pos FROM ("
        '  SELECT *, row_number() OVER (ORDER BY ts, source, stream, "row") - 1 AS seq FROM ('
        f"{' UNION ALL '.join(parts)}))"
    )


def side_table(
    con: duckdb.DuckDBPyConnection,
    name: str,
    of_stream: dict[str, pa.Table],
    streams: tuple[str, str],
) -> pa.Table:
    """Table `name`: a stream's columns with pos, seq, ts and n, the other stream's rows before."""
    mine, other = streams
    rows = pa.concat_tables(
        [
            table.append_column("source", pa.array([source] * table.num_rows, pa.string())).append_column(
                "row", pa.array(range(table.num_rows), pa.int64())
            )
            for source, table in of_stream.items()
        ]
    )
    columns = [c for c in rows.column_names if c not in ("source", "row")]
    con.register("rows", rows.rename_columns([f"c {c}" for c in columns] + ["source", "row"]))
    named = ", ".join(f'"c {c}" AS "{c}"' for c in columns if c not in ("ts", "pos", "seq", "n"))
    con.execute(
        f"CREATE TABLE {name} AS SELECT m.pos, m.seq, m.ts, c.n{', ' + named if named else ''} "
        'FROM merged m JOIN rows ON m.source = rows.source AND m."row" = rows."row" JOIN ('
        f"  SELECT seq, coalesce(sum((stream = '{other}')::BIGINT) OVER (ORDER BY seq ROWS BETWEEN "
        "  UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::BIGINT AS n FROM merged) c ON c.seq = m.seq "
        f"WHERE m.stream = '{mine}'"
    )
    con.unregister("rows")
    return rows


def duckdb_oracle(
    sources: Sources,
    left: tuple[str, str],
    right: tuple[str, str],
    predicate: Sequence[Term],
    windows: tuple[Window, Window],
    event_time: str | None = None,
    select: Sequence[str] | None = None,
) -> pa.Table:
    """The join in SQL, in result order; the arguments are those of `oracle`.

    Without `select` the columns are left_pos, right_pos and seq (of the later row), which are the
    oracle's triples; with it, the selected columns under the names given.
    """
    con = duckdb.connect(config={"threads": 2})
    try:
        merge_sources(con, sources, event_time)
        sides = [
            side_table(con, name, dict(sources[mine]), (mine, other))
            for name, mine, other in (("l", left[1], right[1]), ("r", right[1], left[1]))
        ]
        matches = " AND ".join(_term(term, sides[0], sides[1]) for term in predicate) or "true"
        names = list(_POSITIONS) if select is None else list(select)
        wanted = "l.pos, r.pos, greatest(l.seq, r.seq)"
        if select is not None:
            roles = {left[0]: "l", right[0]: "r"}
            parts = [name.partition(".") for name in select]
            wanted = ", ".join(f'{roles[role]}."{column}"' for role, _, column in parts)
        result = con.sql(
            f"SELECT {wanted} FROM l, r WHERE {matches} AND ("
            f"(l.seq > r.seq AND {live_sql(windows[1], 'l', 'r', 'l.n')}) OR "
            f"(r.seq > l.seq AND {live_sql(windows[0], 'r', 'l', 'r.n')})) "
            "ORDER BY greatest(l.seq, r.seq), least(l.seq, r.seq), l.seq DESC"
        ).to_arrow_table()
        return result.rename_columns(names)
    finally:
        con.close()
