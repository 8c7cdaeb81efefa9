"""A second opinion on kinds, expiry and trees of conditions: the law once more, as SQL that DuckDB runs.

The order is taken from `tests/duckdb_oracle.py`; pairs, the row at which each row expires, the first pair of each left
row and the places are one query each. Windows per key, `where` and bounds of disorder are left to the hand-worked
examples.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from tests.duckdb_conditions import condition_sql, plain_columns
from tests.duckdb_oracle import live_sql, merge_sources, side_table
from tests.oracle import Condition, Kind, Sources, Unbounded, Window

_ORDER = "place, after_unmatched, seq, side"


def _live(window: Window, now: str, candidate: str, n: str) -> str:
    return "true" if isinstance(window, Unbounded) else live_sql(window, now, candidate, n)


def duckdb_kinds(
    sources: Sources,
    left: tuple[str, str],
    right: tuple[str, str],
    on: Condition,
    windows: tuple[Window, Window],
    event_time: str | None,
    kind: Kind,
) -> list[tuple[int, ...]]:
    """(left position, right position, place) and, for counts, the matches, in result order; -1 is no row."""
    con = duckdb.connect(config={"threads": 1})
    try:
        merge_sources(con, sources, event_time)
        sorts = []
        for alias, mine, other in (("l", left[1], right[1]), ("r", right[1], left[1])):
            table = pa.concat_tables(list(sources[mine].values()))
            sorts.append(plain_columns(table)[1])
            side_table(con, alias, {name: plain_columns(t)[0] for name, t in sources[mine].items()}, (mine, other))
            con.execute(
                f"CREATE TABLE row_{alias} AS SELECT seq, ts, (SELECT count(*) FROM {alias} AS y WHERE y.seq < m.seq) "
                "AS n FROM merged AS m"
            )
        matches = condition_sql(on, (sorts[0], sorts[1]))
        con.execute(
            "CREATE TABLE pairs AS SELECT l.pos AS left_pos, r.pos AS right_pos, greatest(l.seq, r.seq) AS place, "
            "true AS after_unmatched, least(l.seq, r.seq) AS seq, (r.seq > l.seq)::INTEGER AS side "
            f"FROM l, r WHERE {matches} AND ("
            f"(l.seq > r.seq AND {_live(windows[1], 'l', 'r', 'l.n')}) OR "
            f"(r.seq > l.seq AND {_live(windows[0], 'r', 'l', 'r.n')}))"
        )
        return [tuple(row) for row in con.execute(_query(kind, windows)).fetchall()]
    finally:
        con.close()


def _query(kind: Kind, windows: tuple[Window, Window]) -> str:
    if kind == "count":
        roles = [
            f"SELECT {shown}, y.seq AS place, {side} AS side, "
            f"(SELECT count(*) FROM pairs AS p WHERE p.place = y.seq AND p.side = {side}) AS matches FROM {alias} AS y"
            for alias, side, shown in (("l", 0, "y.pos AS a, -1 AS b"), ("r", 1, "-1 AS a, y.pos AS b"))
        ]
        return f"SELECT a, b, place, matches FROM ({' UNION ALL '.join(roles)}) ORDER BY place, side"
    if kind == "semi":
        return (
            f"SELECT left_pos, -1, place FROM (SELECT *, row_number() OVER (PARTITION BY left_pos ORDER BY {_ORDER}) "
            f"AS number FROM pairs) WHERE number = 1 ORDER BY {_ORDER}"
        )
    parts = [] if kind == "anti" else [f"SELECT left_pos, right_pos, {_ORDER} FROM pairs"]
    if kind in ("left", "full", "anti"):
        parts.append(_unmatched("l", 0, windows[0], "y.pos, -1"))
    if kind in ("right", "full"):
        parts.append(_unmatched("r", 1, windows[1], "-1, y.pos"))
    return f"SELECT left_pos, right_pos, place FROM ({' UNION ALL '.join(parts)}) ORDER BY {_ORDER}"


def _unmatched(alias: str, side: int, window: Window, positions: str) -> str:
    """Rows without a pair, at the first row at which they are not live, else after the last."""
    column = ("left_pos", "right_pos")[side]
    expires = (
        f"(SELECT min(t.seq) FROM row_{alias} AS t WHERE t.seq > y.seq AND NOT coalesce("
        f"{_live(window, 't', 'y', 't.n')}, false))"
    )
    left, right = positions.split(", ")
    return (
        f"SELECT {left} AS left_pos, {right} AS right_pos, "
        f"coalesce({expires}, (SELECT count(*) FROM merged)) AS place, false AS after_unmatched, "
        f"y.seq AS seq, {side} AS side FROM {alias} AS y "
        f"WHERE NOT EXISTS (SELECT 1 FROM pairs AS p WHERE p.{column} = y.pos)"
    )
