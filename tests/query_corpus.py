"""Join queries as the suites of SQL engines ask them, written for this project: atoms, combined by a seed.

An atom is a condition between R and S, or on one of them. A query joins by one atom, or by several with AND, OR and
NOT, in any kind of join, with or without WHERE. The tables are tiny and full of ties, nulls and NaN, so that each query
takes a few milliseconds and still meets every case.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN = float("nan")

KEYED = [
    "R.i = S.i",
    "R.i IS NOT DISTINCT FROM S.i",
    "R.t = S.t",
    "R.t IS NOT DISTINCT FROM S.t",
    "R.d = S.d",
    "R.x = S.x",
    "R.x IS NOT DISTINCT FROM S.x",
    "R.p = S.p",
    "R.b = S.b",
    "R.b IS NOT DISTINCT FROM S.b",
    "R.l = S.l",
    "R.l IS NOT DISTINCT FROM S.l",
    "R.l = [1, 2]",
    "R.l = [S.i]",
    "[R.i, R.j] = [S.i, S.j]",
    "list_contains([R.i, R.j], S.i)",
    "CASE WHEN R.i = 1 THEN NULL END = S.i",
    "R.st = S.st",
    "R.st IS NOT DISTINCT FROM S.st",
    "R.i IS NOT DISTINCT FROM S.j",
    "R.u IS NOT DISTINCT FROM S.i",
    "R.p IS NOT DISTINCT FROM S.p",
    "R.d IS NOT DISTINCT FROM S.d",
    "R.ts IS NOT DISTINCT FROM S.ts",
    "R.i + 1 IS NOT DISTINCT FROM S.i",
    "R.iv = S.iv",
    "lower(R.t) = lower(S.t)",
    "upper(R.t) = S.t",
    "trim(R.t) = trim(S.t)",
    "length(R.t) = length(S.t)",
    "length(R.t) = S.i",
    "substring(R.t, 1, 1) = substring(S.t, 1, 1)",
    "left(R.t, 1) = right(S.t, 1)",
    "coalesce(R.i, 0) = coalesce(S.i, 0)",
    "coalesce(R.t, '-') = coalesce(S.t, '-')",
    "COALESCE(R.i, R.j, 7) = S.i",
    "nullif(R.i, 2) = nullif(S.i, 3)",
    "abs(R.i) = abs(S.i)",
    "R.i % 2 = S.i % 2",
    "R.i % 3 = S.j",
    "mod(R.i, 3) = mod(S.i, 3)",
    "R.i // 2 = S.i // 2",
    "round(R.x) = round(S.x)",
    "round(R.p, 1) = round(S.p, 1)",
    "floor(R.x) = floor(S.x)",
    "ceil(R.x) = S.i",
    "CAST(R.x AS INTEGER) = S.i",
    "CAST(R.i AS VARCHAR) = S.t",
    "R.i::VARCHAR = S.i::VARCHAR",
    "TRY_CAST(R.t AS INTEGER) = S.i",
    "CAST(R.i AS DOUBLE) = S.x",
    "CAST(R.ts AS DATE) = S.d",
    "CAST(R.d AS TIMESTAMP) = S.ts",
    "year(R.d) = year(S.d)",
    "extract(month FROM R.d) = extract(month FROM S.d)",
    "date_part('day', R.ts) = S.i",
    "EXTRACT(hour FROM R.ts) = EXTRACT(hour FROM S.ts)",
    "date_trunc('month', R.ts) = date_trunc('month', S.ts)",
    "date_trunc('day', R.ts) = S.d",
    "R.d + 1 = S.d",
    "R.d - 1 = S.d",
    "S.d - R.d = 1",
    "R.d + INTERVAL '1' DAY = S.d",
    "R.d + INTERVAL '1' MONTH = S.d",
    "R.d + INTERVAL '1 month' = S.ts",
    "R.d - INTERVAL '1' YEAR = S.d",
    "R.st.a = S.i",
    "R.st['a'] = S.st.a",
    "R.l[1] = S.l[1]",
    "R.l[1] = S.i",
    "len(R.l) = len(S.l)",
    "list_contains(R.l, S.i)",
    "S.i = ANY(R.l)",
    "array_contains(S.l, R.j)",
    "CASE WHEN R.b THEN R.i ELSE R.j END = S.i",
    "CASE R.i WHEN 1 THEN 'a' WHEN 2 THEN 'b' END = S.t",
    "CASE WHEN R.i IS NULL THEN -1 ELSE R.i END = CASE WHEN S.i IS NULL THEN -1 ELSE S.i END",
    "R.t || 'x' = S.t || 'x'",
    "concat(R.t, S.t) = 'ab'",
    "R.t || S.t = 'aa'",
    "reverse(R.t) = S.t",
    "replace(R.t, 'a', 'b') = S.t",
    "(R.i & 1) = (S.i & 1)",
    "(R.i | 1) = S.i",
    "xor(R.i, 1) = S.i",
    "R.j << 1 = S.j",
    "greatest(R.i, 1) = greatest(S.i, 1)",
    "least(R.i, R.j) = S.i",
    "sign(R.i) = sign(S.i)",
    "R.i ^ 2 = S.i ^ 2",
    "sqrt(R.j) = S.x",
    "(R.i, R.j) = (S.i, S.j)",
    "R.u = S.u",
    "R.u + 1 = S.i",
    "R.f = S.f",
    "quarter(R.d) = quarter(S.d)",
    "strpos(R.t, 'a') = strpos(S.t, 'a')",
    "lpad(R.t, 3, '*') = lpad(S.t, 3, '*')",
]

RANGES = [
    "R.i < S.i",
    "R.i <= S.j",
    "R.x > S.x",
    "R.t < S.t",
    "R.ts < S.ts",
    "R.d >= S.d",
    "R.p < S.p",
    "R.i + 1 < S.i * 2",
    "R.i BETWEEN S.i - 1 AND S.i + 1",
    "R.d BETWEEN S.d - 2 AND S.d",
    "R.ts BETWEEN S.ts - INTERVAL '1' HOUR AND S.ts + INTERVAL '2' HOUR",
    "abs(R.i - S.i) <= 1",
    "abs(R.x - S.x) < 0.5",
    "R.i - S.i > 1",
    "R.i IS DISTINCT FROM S.i",
    "R.t IS DISTINCT FROM S.t",
    "R.x IS DISTINCT FROM S.x",
    "R.l IS DISTINCT FROM S.l",
    "R.i <> S.i",
    "R.t != S.t",
    "R.l < S.l",
    "R.st >= S.st",
    "R.iv <= S.iv",
    "coalesce(R.i, 0) < coalesce(S.i, 0)",
    "length(R.t) > length(S.t)",
    "round(R.x) < S.i",
    "lower(R.t) <= lower(S.t)",
    "R.d + INTERVAL '1' MONTH < S.d",
    "R.d + INTERVAL '2' MONTH > S.d",
    "date_diff('day', R.d, S.d) > 3",
    "date_diff('month', R.ts, S.ts) >= 1",
    "year(R.d) < year(S.d)",
    "R.t LIKE 'a%' AND S.t LIKE '%b'",
    "R.t LIKE S.t",
    "R.t NOT LIKE '%a%'",
    "R.t ILIKE 'A_'",
    "R.t ILIKE S.t",
    "R.t LIKE '!%%' ESCAPE '!'",
    "starts_with(R.t, S.t)",
    "contains(R.t, S.t)",
    "ends_with(S.t, 'b')",
    "regexp_matches(R.t, '^[ab]+$')",
    "(R.i < S.i) IS TRUE",
    "(R.i < S.i) IS NOT TRUE",
    "(R.i < S.i) IS FALSE",
    "(R.i < S.i) IS NOT FALSE",
    "(R.i < S.i) = (R.j < S.j)",
    "(R.i = S.i) IS NULL",
    "(R.i > 1) = S.b",
    "R.b IS NOT TRUE",
    "R.b AND S.b",
    "NOT R.b OR S.b",
    "greatest(R.i, S.i) > 2",
    "least(R.i, S.j, 2) = 1",
    "coalesce(R.i, S.i) = 2",
    "coalesce(R.i + S.i, 0) = 0",
    "CASE WHEN R.i < S.i THEN R.b ELSE S.b END",
    "CASE WHEN R.i > 1 THEN 'more' ELSE 'less' END <> CASE WHEN S.i > 1 THEN 'more' ELSE 'less' END",
    "R.i * S.i = 2",
    "R.i + R.j = S.i",
    "R.i - S.j = R.j",
    "R.p * 2 > S.p + 0.5",
    "R.x / 2 < S.i",
    "R.l[2] > S.i",
    "R.i IN (1, 2, S.i)",
    "R.i NOT IN (1, S.i)",
    "R.t IN ('a', 'b') AND S.t NOT IN ('a')",
    "R.i = 1 OR S.i = 2",
    "R.i = S.i OR R.t = S.t",
    "R.i = S.i OR (R.i IS NULL AND S.i IS NULL)",
    "NOT (R.i = S.i)",
    "NOT (R.i < S.i AND R.t = S.t)",
    "NOT (R.i IS NOT DISTINCT FROM S.i)",
    "CAST(R.i < S.i AS INTEGER) = 1",
    "1 = 1",
    "TRUE",
    "NULL = 2",
    "R.i = NULL",
    "1 = 0",
    "'a' = 'a'",
    "2 > 1",
]

FURTHER = [
    "R.i = S.i AND R.t || '' = S.t",
    "NOT (R.i IN (1,2) AND S.i IN (1,2))",
    "(R.i IS NULL) = (S.i IS NULL)",
    "(R.i = S.i) = (R.t = S.t)",
    "(R.i = S.i) IS DISTINCT FROM (R.t = S.t)",
    "(R.i = S.i) IS NOT DISTINCT FROM TRUE",
    "R.b = (S.i > 1)",
    "R.b <> S.b",
    "R.b > S.b",
    "coalesce(R.b, S.b, TRUE)",
    "R.i BETWEEN least(S.i,S.j) AND greatest(S.i,S.j)",
    "R.t BETWEEN 'a' AND coalesce(S.t,'b')",
    "CASE WHEN R.i=1 THEN S.i=1 WHEN R.i=2 THEN S.i=2 ELSE FALSE END",
    "R.i + S.i IS NULL",
    "R.x + S.x IS NOT NULL AND R.x<S.x",
    "R.i * 1.5 = S.x",
    "R.p = S.i",
    "R.p + R.i > S.p",
    "coalesce(R.p,0) = coalesce(S.p,0)",
    "greatest(R.p, 1) = S.p",
    "round(R.p) = S.i",
    "floor(R.p) = S.i",
    "CAST(R.p AS DOUBLE) = S.x",
    "CAST(R.x AS DECIMAL(6,2)) = S.p",
    "R.i::DOUBLE = S.x",
    "R.ts::DATE = S.ts::DATE",
    "R.ts - S.ts > INTERVAL '1' HOUR",
    "R.ts > S.ts + INTERVAL '1 day 2 hours'",
    "R.ts > S.d + INTERVAL '1 month 1 day'",
    "R.d = S.ts",
    "R.d > S.ts",
    "abs(R.d - S.d) = 1",
    "R.d - S.d BETWEEN 0 AND 30",
    "R.d - S.d = S.i",
    "R.d - S.d IN (0, 29)",
    "month(R.d) = S.i",
    "dayofyear(R.d) > 30 AND R.i=S.i",
    "isodow(R.d) = isodow(S.d)",
    "epoch(R.ts) > epoch(S.ts)",
    "minute(R.ts) = S.i",
    "week(R.d) = week(S.d)",
    "R.l[1] + R.l[2] = S.i",
    "R.l[-1] = S.i",
    "len(R.l) > S.i",
    "R.l IN (S.l, [1])",
    "R.l > [1]",
    "R.st.b = S.t OR R.st.a = S.i",
    "R.st.b IS NOT DISTINCT FROM S.st.b",
    "R.st < S.st",
    "R.st != S.st",
    "NOT (R.l = S.l)",
    "R.l BETWEEN S.l AND [9]",
    "list_contains(R.l, S.i) OR R.i = S.i",
    "NOT list_contains(R.l, S.i)",
    "R.iv < S.iv",
    "R.iv IS NOT DISTINCT FROM S.iv",
    "R.i % S.i = 0",
    "R.i // S.i = 1",
    "(R.i & S.i) = 1",
    "(R.i | S.j) > 2",
    "xor(R.i, S.i) = 3",
    "~R.i = S.i",
    "R.j >> 1 = S.j",
    "ln(R.j + 1) < S.x",
    "exp(R.j) > S.x",
    "log10(R.j + 1) < S.i",
    "sqrt(R.i) = S.i",
    "power(R.i, 2) = S.i",
    "R.i ** 2 = S.i",
    "sign(R.x) = S.i",
    "trunc(R.x) = S.i",
    "ceil(R.x) < floor(S.x)",
    "round(R.x, 0) = S.x",
    "upper(R.t) = upper(S.t) AND R.i IS NOT DISTINCT FROM S.i",
    "R.t = reverse(S.t)",
    "right(R.t,1) = S.t",
    "substring(R.t, 2) = S.t",
    "substr(R.t,1,1) = S.t",
    "SUBSTRING(R.t FROM 1 FOR 1) = S.t",
    "POSITION('a' IN R.t) = S.i",
    "TRIM(R.t) = S.t",
    "TRIM(BOTH 'a' FROM R.t) = S.t",
    "ltrim(R.t) = S.t",
    "rpad(R.t,2,'x') = rpad(S.t,2,'x')",
    "repeat(R.t,2) = repeat(S.t,2)",
    "replace(R.t,'a','') = S.t",
    "concat(R.t,'b') = S.t",
    "R.t LIKE '%' || S.t || '%'",
    "R.t LIKE S.t || '%'",
    "lower(R.t) LIKE lower(S.t)",
    "R.t NOT ILIKE S.t",
    "starts_with(S.t, R.t) AND NOT R.t = ''",
    "length(R.t || S.t) = 2",
    "nullif(R.t,'a') = nullif(S.t,'b')",
    "nullif(R.t, S.t) IS NULL",
    "coalesce(nullif(R.i,1), S.i) = S.i",
    "CASE R.t WHEN S.t THEN 1 WHEN 'a' THEN 2 END = 2",
    "R.u < S.u",
    "R.u + S.u = 2",
    "R.f = S.f AND R.f > 0.1",
    "R.f < 0.25",
    "R.f BETWEEN 0.1 AND 0.2",
    "R.f <> 0.1",
    "R.f NOT IN (0.1)",
    "-R.f = -0.1",
    "R.f = S.x",
    "'2024-01-31' = R.d",
    "R.d BETWEEN '2024-01-30' AND '2024-02-28'",
    "R.ts BETWEEN '2024-01-31' AND '2024-02-01 00:00:00'",
    "R.d <> '2024-01-31'",
    "R.d IS NOT DISTINCT FROM '2024-01-31'",
    "R.d = S.d AND R.ts > '2024-01-31 08:00:00'",
    "1 < 2 AND R.i = S.i",
    "NULL IS NULL AND R.i = S.i",
    "R.i = S.i AND NOT FALSE",
    "R.i = S.i OR FALSE",
    "R.i = S.i AND (TRUE OR R.t = 'x')",
    "(R.i, R.t) IN ((1,'a'),(2,'b'))",
    "(R.i, R.j) IN ((S.i, S.j))",
    "date_diff('hour', R.ts, S.ts) > 4",
    "date_diff('week', R.d, S.d) = 0",
    "datediff('year', R.d, S.d) = 1",
    "date_trunc('week', R.d) = date_trunc('week', S.d)",
    "date_trunc('hour', R.ts) = date_trunc('hour', S.ts)",
    "date_part('month', R.d) = S.i",
    "extract(dow FROM R.d) = S.i",
    "extract(epoch FROM R.ts) = extract(epoch FROM S.ts)",
    "extract(quarter FROM R.d) = S.i",
    "R.d + INTERVAL 1 DAY = S.d",
    "R.d + INTERVAL '2 years' > S.d",
    "R.ts - INTERVAL '1' MONTH < S.ts",
    "CAST(R.b AS INTEGER) = S.i",
    "CAST(R.i AS BOOLEAN) = S.b",
    "CAST(R.d AS VARCHAR) = S.t",
    "CAST(R.ts AS VARCHAR) > S.t",
    "CAST(R.x AS VARCHAR) = S.t",
    "R.i::VARCHAR || 'a' = S.t",
    "regexp_matches(R.t, 'a') = S.b",
    "contains(R.t, 'a') AND R.i = S.i",
    "if(R.b, R.i, R.j) = S.i",
    "R.i IS NOT NULL AND R.i IS NOT DISTINCT FROM S.i",
    " AND ".join(f"R.{name} IS NOT DISTINCT FROM S.{name}" for name in ("i", "j", "t", "b")),
    "R.i IS DISTINCT FROM S.i AND R.j IS NOT DISTINCT FROM S.j",
    "R.i IS DISTINCT FROM S.i OR R.j = S.j",
    "NOT (R.i IS DISTINCT FROM S.i)",
    "R.d + 1 + 1 > S.d",
    "R.d - 30 + 1 = S.d - 29",
    "CAST(R.d + 1 AS VARCHAR) > CAST(S.d AS VARCHAR)",
    "(R.d + 2) - S.d = 2",
    "R.ts > TIMESTAMP '2024-01-01 06:30:00' + INTERVAL '1' MONTH AND R.i = S.i",
    "greatest(S.ts, TIMESTAMP '2024-01-01 06:30:00' + INTERVAL '1' MONTH) > R.ts",
]
"""Conditions that mix types, functions and three-valued logic in ways of their own."""

ALONE = [
    "R.i > 1",
    "S.i IS NOT NULL",
    "R.x IS NULL",
    "S.t = 'a'",
    "R.d > '2024-01-30'",
    "S.ts < '2024-02-01 12:00:00'",
    "R.d IN ('2024-01-31', '2024-02-29')",
    "R.d = DATE '2024-01-31'",
    "S.ts >= TIMESTAMP '2024-01-31 12:00:00'",
    "R.f = 0.1",
    "S.f <= 0.1",
    "R.f IN (0.1, 0.25)",
    "length(R.t) > 1",
    "coalesce(S.b, FALSE)",
    "S.b IS NOT FALSE",
    "R.p BETWEEN 1.05 AND 1.25",
    "R.l IS NOT NULL",
    "S.st.b = 'x'",
    "len(S.l) >= 1",
    "nullif(R.i, 1) IS NULL",
    "R.t LIKE '_'",
    "round(S.x, 1) > 0.3",
    "S.i % 2 = 0",
    "dayofweek(R.d) = 3",
    "extract(year FROM S.d) = 2024",
    "CAST(S.i AS VARCHAR) <> '1'",
    "R.i::DOUBLE / 2 > 0.5",
    "R.d - DATE '2024-01-01' > 30",
    "1 = 1",
    "CAST(R.p AS INTEGER) = 1",
    "trunc(R.x) = 1",
]

SELECTED = [
    "coalesce(S.i, -1)", "coalesce(R.i, S.i, 7)", "lower(R.t) || coalesce(S.t, '?')", "R.i IS NOT DISTINCT FROM S.i",
    "CASE WHEN S.id IS NULL THEN 'none' ELSE 'some' END", "R.i % 2", "S.i // 2", "CAST(S.i AS VARCHAR)",
    "round(S.p, 1)", "S.d + INTERVAL '1' MONTH", "year(S.d)", "S.l[1]", "S.st.a", "length(S.t)", "greatest(R.i, S.i)",
    "(R.i < S.i) IS TRUE", "R.i < S.i", "S.d + 1", "nullif(R.i, S.i)", "R.i ^ 2", "S.b IS NOT TRUE",
    "concat(R.t, S.t)", "R.i IN (1, S.i)", "[R.i, S.i]", "date_trunc('month', S.ts)", "extract(hour FROM R.ts)",
    "S.f = 0.1", "CAST(S.d + 1 AS VARCHAR)", "abs(R.i - S.i)", "R.p * 2 + S.i", "NOT (R.b AND S.b)",
]  # fmt: skip
"""Values to select, also of rows without a match."""

SEVERAL_ITEMS = ["", "", ", R.i + T.i AS value", ", coalesce(R.t, S.t, T.t) AS value", ", R.i < T.i AS value"]

AMONG_THREE = [
    "R.i + S.i = T.i",
    "R.i < S.i AND S.i < T.i",
    "R.i = S.i AND S.i = T.i AND T.i = R.i",
    "R.i = S.i AND (S.j = T.j OR R.t = T.t)",
    "R.i BETWEEN S.i AND T.i",
    "coalesce(R.i, S.i) = T.i AND R.j = S.j",
    "CASE WHEN R.b THEN S.i ELSE T.i END = 1 AND R.j = T.j",
    "R.t || S.t = T.t",
    "R.i = T.i AND S.j IN (1, T.j)",
    "R.i IS NOT DISTINCT FROM S.i AND S.t IS NOT DISTINCT FROM T.t",
    "R.d < S.d AND T.ts BETWEEN R.d AND S.d",
    "greatest(R.i, S.i, T.i) = 1",
    "R.i = S.i AND R.l = T.l",
    "list_contains([R.i, S.i], T.i) AND R.j = S.j",
    "NOT (R.i = S.i OR S.i = T.i) AND R.t = T.t",
    "R.t LIKE S.t || '%' AND S.j % 2 = T.j % 2",
    "R.i IN (S.i, T.i) AND S.t < T.t",
    "R.x < S.x AND S.p >= T.p AND R.b IS NOT TRUE",
]
"""Conditions among three streams."""

KINDS = ["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"]

REFUSED = [
    "SELECT R.id, S.id FROM R NATURAL JOIN S",
    "SELECT R.id, S.id FROM R JOIN S ON R.i = (SELECT max(S.i) FROM S)",
    "SELECT R.id, S.id FROM R JOIN S ON R.i = S.i ORDER BY R.id",
    "SELECT R.id, S.id FROM R JOIN S ON R.i = S.i LIMIT 3",
    "SELECT DISTINCT R.id FROM R JOIN S ON R.i = S.i",
    "SELECT R.id, count(*) FROM R JOIN S ON R.i = S.i GROUP BY R.id",
    "SELECT R.id, S.id FROM R LEFT JOIN S ON R.i = S.i WHERE S.i = 1",
    "SELECT R.id, S.id FROM R JOIN S ON R.st = {'a': 1, 'b': 'x'}",
    "SELECT R.id, S.id FROM R JOIN S ON R.i = '1'",
    "SELECT R.id, S.id FROM R JOIN S ON i = j",
    "SELECT R.id FROM R WHERE R.i IN (SELECT i FROM S)",
    "SELECT R.id, S.id FROM R JOIN S ON R.t SIMILAR TO 'a|b'",
]
"""What engines over tables also answer, and a join of streams does not: these are part of the corpus."""

_START = datetime(2024, 1, 31, 6)


def _texts(chance: random.Random, count: int) -> list[str | None]:
    return [chance.choice(["a", "A", "b", "ab", "Ab", " a", "", "%", "ä", "1", "2", None]) for _ in range(count)]


def _table(seed: int, count: int) -> pa.Table:
    chance = random.Random(seed)

    def some(*values: Any) -> list[Any]:
        return [chance.choice([*values, None]) for _ in range(count)]

    days = [date(2024, 1, 30), date(2024, 1, 31), date(2024, 2, 28), date(2024, 2, 29), date(2023, 1, 31)]
    times = [_START + timedelta(hours=hours) for hours in (0, 1, 6, 30, 18, 720)]
    lists = [[], [1], [1, 2], [2], [1, None], [None], [1, 2, 3]]
    structs = [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": None, "b": "y"}]
    intervals = [pa.MonthDayNano(parts) for parts in ([1, 0, 0], [0, 30, 0], [0, 1, 0], [0, 0, 86_400_000_000_000])]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "i": pa.array(some(-1, 0, 1, 2, 2, 3), pa.int64()),
            "j": pa.array(some(0, 1, 2), pa.int32()),
            "u": pa.array(some(0, 1, 2), pa.uint16()),
            "x": pa.array(some(0.0, -0.0, 0.5, 1.0, 1.5, -1.5, NAN, 2.0), pa.float64()),
            "f": pa.array(some(0.1, 0.25, 2.0), pa.float32()),
            "p": pa.array(some(*map(Decimal, ("1.00", "1.05", "1.25", "-0.50"))), pa.decimal128(6, 2)),
            "b": pa.array(some(True, False), pa.bool_()),
            "t": pa.array(_texts(chance, count), pa.string()),
            "d": pa.array(some(*days), pa.date32()),
            "ts": pa.array(some(*times), pa.timestamp("us")),
            "l": pa.array(some(*lists), pa.list_(pa.int64())),
            "st": pa.array(some(*structs), pa.struct([("a", pa.int64()), ("b", pa.string())])),
            "iv": pa.array(some(*intervals), pa.month_day_nano_interval()),
        }
    )


R, S, T = _table(11, 13), _table(12, 11), _table(13, 9)


def _ticks(seed: int, count: int) -> pa.Table:
    """Rows with an event time that no two of them share, so that there is one choice as of any time."""
    chance = random.Random(seed)
    minutes = sorted(chance.sample(range(60), count))
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "ts": pa.array([_START + timedelta(minutes=each) for each in minutes], pa.timestamp("us")),
            "k": pa.array([chance.choice(["a", "b", None]) for _ in minutes], pa.string()),
            "n": pa.array([chance.choice([1, 2, None]) for _ in minutes], pa.int64()),
            "price": pa.array([chance.choice([0.5, 1.25, 9.0]) for _ in minutes], pa.float64()),
        }
    )


A, B = _ticks(14, 20), _ticks(15, 17)

USING = [
    "SELECT R.id, S.id FROM R JOIN S USING (i)",
    "SELECT R.id, S.id FROM R JOIN S USING (i, t)",
    "SELECT R.id, S.id, S.i FROM R LEFT JOIN S USING (t)",
    "SELECT R.id FROM R SEMI JOIN S USING (d)",
    "SELECT R.id FROM R ANTI JOIN S USING (i, j)",
    "SELECT R.id, S.id FROM R FULL JOIN S USING (p)",
    "SELECT R.id, S.id FROM R JOIN S USING (i) WHERE R.j > 0",
    "SELECT R.id, S.id, T.id FROM R JOIN S USING (i) JOIN T USING (i)",
    "SELECT R.id, S.id, T.id FROM R JOIN S USING (t) JOIN T ON T.i < S.i AND T.i > 0",
]

AS_OF = [
    f"SELECT A.id, B.id FROM A {kind} JOIN B {condition}"
    for kind in ("ASOF", "ASOF LEFT")
    for condition in (
        "ON A.ts >= B.ts",
        "ON A.ts > B.ts",
        "ON A.ts <= B.ts",
        "ON A.ts < B.ts",
        "ON B.ts <= A.ts",
        "ON A.k = B.k AND A.ts >= B.ts",
        "ON A.k = B.k AND A.ts < B.ts",
        "ON A.k = B.k AND A.n = B.n AND A.ts >= B.ts",
        "USING (ts)",
        "USING (k, ts)",
        "USING (k, n, ts)",
    )
] + [
    "SELECT A.id, B.price * 2 AS twice FROM A ASOF JOIN B ON A.k = B.k AND A.ts >= B.ts",
    "SELECT A.id, coalesce(B.k, '?') || A.k AS both FROM A ASOF LEFT JOIN B ON A.ts >= B.ts",
    "SELECT A.id, A.price - B.price AS change FROM A ASOF LEFT JOIN B ON A.n = B.n AND A.ts > B.ts",
    "SELECT A.id, B.id FROM A ASOF JOIN B ON A.k = B.k AND A.ts >= B.ts WHERE A.price > 1",
]
"""As-of joins. DuckDB has no other conditions in them."""


def without_nan(table: pa.Table) -> pa.Table:
    """The table as DuckDB gets it: to the law NaN is no value, to DuckDB it is the greatest."""
    place = table.schema.get_field_index("x")
    values = [None if value is None or value != value else value for value in table["x"].to_pylist()]
    return table.set_column(place, "x", pa.array(values, pa.float64()))


def queries(seed: int = 1) -> Iterator[str]:
    """At least a thousand queries: every atom in several kinds of join, then random combinations."""
    chance = random.Random(seed)
    for number, atom in enumerate([*KEYED, *RANGES]):
        # DuckDB has no semi join by an interval
        kinds = ["INNER JOIN", "LEFT JOIN"] if ".iv" in atom else chance.sample(KINDS[1:], 2)
        for kind in ("JOIN", *kinds):
            yield _query(kind, atom, chance if number % 2 else None)
    for atom in FURTHER:
        yield _query("JOIN", atom, None)
    for atom in ALONE:
        yield _query("JOIN", f"{chance.choice(KEYED)} AND {atom}", None)
        yield f"SELECT R.id, S.id FROM R, S WHERE {chance.choice(RANGES)} AND {atom}"
        yield f"SELECT R.id, S.id FROM R CROSS JOIN S WHERE {atom}"
    for _ in range(340):
        parts = [chance.choice(KEYED), chance.choice(RANGES), chance.choice(ALONE), chance.choice(KEYED)]
        shape = chance.choice(
            ["{0} AND {1}", "{0} AND {2}", "{0} AND {1} AND {2}", "{0} OR {3}", "({0} OR {1}) AND {2}", "{0} AND {3}",
             "NOT ({0} AND {2})", "{0} AND NOT ({1})", "({0}) IS NOT TRUE AND {3}", "{1} AND {2}"]
        )  # fmt: skip
        kinds = KINDS[:4] if any(".iv" in part for part in parts) else KINDS
        yield _query(chance.choice(kinds), shape.format(*(f"({part})" for part in parts)), None)
    yield from USING
    yield from AS_OF
    yield from _several(chance)
    yield from _computed(chance)
    yield from REFUSED


def _several(chance: random.Random) -> Iterator[str]:
    """Joins of three streams: atoms between each pair, on one of them, and among all."""
    between = [*KEYED, *RANGES]
    for number in range(120):
        parts = [chance.choice(KEYED), _moved(chance.choice(between)), chance.choice(ALONE)]
        shape = chance.choice(
            ["{0} AND {1}", "{0} AND {1}", "{0} AND {1} AND {2}", "{0} AND NOT ({1})", "{0} AND ({1} OR {2})"]
        )
        condition = shape.format(*(f"({part})" for part in parts))
        form = chance.choice(
            ["FROM R, S, T WHERE {0}", "FROM R JOIN S ON {1} JOIN T ON {2}", "FROM R CROSS JOIN S JOIN T ON {0}"]
        )
        shown = SEVERAL_ITEMS[number % len(SEVERAL_ITEMS)]
        yield f"SELECT R.id, S.id, T.id{shown} " + form.format(condition, parts[0], parts[1])
    for condition in AMONG_THREE:
        yield f"SELECT R.id, S.id, T.id FROM R, S, T WHERE {condition}"


def _computed(chance: random.Random) -> Iterator[str]:
    """Computed items over joins by any condition."""
    for item in SELECTED:
        for kind in ("JOIN", "LEFT JOIN"):
            yield f"SELECT R.id, S.id, {item} AS value FROM R {kind} S ON {chance.choice(KEYED)}"


def _moved(atom: str) -> str:
    """An atom between R and S as one between S and T."""
    return re.sub(r"\bR\.", "S.", re.sub(r"\bS\.", "T.", atom))


def _stream(atom: str) -> str:
    """The stream that a condition is about, or 1 if it is about none."""
    return next((stream for stream in "RS" if f"{stream}." in atom), "1")


def _query(kind: str, condition: str, chance: random.Random | None) -> str:
    columns = "R.id" if kind in ("SEMI JOIN", "ANTI JOIN") else "R.id, S.id"
    where = ""
    if chance is not None:
        may = {"JOIN": "RS", "INNER JOIN": "RS", "RIGHT JOIN": "S", "FULL JOIN": ""}.get(kind, "R")
        where = f" WHERE {chance.choice([atom for atom in ALONE if _stream(atom) in f'{may}1'])}"
    return f"SELECT {columns} FROM R {kind} S ON {condition}{where}"
