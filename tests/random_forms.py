"""Random conditions as SQL text, over every form that a query may use, with their meaning for some rows.

Conditions are drawn over the values of `tests/random_values.py`; docs/semantics.md says what they mean.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from datetime import timedelta

from tests.oracle_terms import nearest
from tests.random_values import (
    DAYS,
    HUNDREDTHS,
    OPERATORS,
    Form,
    Kind,
    Values,
    applied,
    column,
    compare,
    computed,
    constant,
    every,
    opposite,
    ordered,
    some,
    strictly,
)


class Grammar(Values):
    """Draws conditions over the columns of some roles, and values."""

    def condition_of(self, roles: Sequence[str], depth: int) -> Form:
        within = Grammar(self.chance, roles, constants=self.constants)
        return within.atom() if depth > 1 else within.of_one(roles[0])

    def condition(self, depth: int = 2) -> Form:
        """Atoms, mostly of two roles; AND, OR, NOT of them; and conditions that are values."""
        if depth == 0 or self.chance.random() < 0.35:
            return self.atom()
        parts = [self.condition(depth - 1) for _ in range(self.chance.choice([1, 2, 2, 3]))]
        shape = self.chance.choice(
            ["and", "and", "and", "or", "not", "is", "equal", "case", "coalesce", "null", "cast"]
        )
        first, last = parts[0], parts[-1]
        if shape == "and":
            return every(parts)
        if shape == "or":
            return some(parts)
        if shape == "not":
            return opposite(first)
        if shape == "is":
            truth, negated = self.chance.random() < 0.5, self.chance.random() < 0.5
            sql = f"({first.sql} IS {'NOT ' if negated else ''}{str(truth).upper()})"
            return Form(sql, lambda rows: (first.truth(rows) is truth) is not negated)
        if shape == "equal":
            op = self.chance.choice(["=", "!=", "IS DISTINCT FROM"])
            if op == "IS DISTINCT FROM":
                return computed(f"({first.sql} {op} {last.sql})", operator.ne, first, last)
            return compare(op, first, last)
        if shape == "case":
            other = self.condition(0)
            return applied(f"CASE WHEN {other.sql} THEN {first.sql} ELSE {last.sql} END", "case", other, first, last)
        if shape == "coalesce":
            return applied(f"coalesce({first.sql}, {last.sql}, FALSE)", "coalesce", first, last, constant("", False))
        if shape == "null":
            return computed(f"({first.sql} IS NULL)", lambda value: value is None, first)
        as_number = strictly(f"CAST({first.sql} AS INTEGER)", int, first)
        return compare(self.chance.choice(["=", "<"]), as_number, constant("1", 1))

    def atom(self) -> Form:
        kinds: list[Kind] = ["integer", "integer", "text", "date", "moment", "float", "decimal", "list", "struct"]
        kind = self.chance.choice(kinds)
        one, other = self.chance.sample(self.roles, 2) if len(self.roles) > 1 else self.roles * 2
        atoms: list[Callable[[], Form]] = [
            *[lambda: self.comparison(kind, one, other)] * 6,
            *[lambda: self.distinct(kind, one, other)] * 2,
            lambda: self.listed(kind, one, other),
            lambda: self.between(kind, one, other),
            lambda: self.row_values(one, other),
            lambda: self.interval(one, other),
            lambda: self.of_text(one, other),
            lambda: self.of_list(one, other),
            lambda: self.of_times(one, other),
            lambda: self.of_one(self.chance.choice([one, other])),
        ]
        return self.chance.choice(atoms)()

    def comparison(self, kind: Kind, one: str, other: str) -> Form:
        op = self.chance.choice(["=", "=", *OPERATORS])
        among = [other] if self.chance.random() < 0.85 else [one, other]
        partners: dict[str, list[Kind]] = {
            "date": ["date", "moment"], "float": ["float", "integer"], "decimal": ["decimal", "integer"],
        }  # fmt: skip
        partner = self.chance.choice([kind, *partners.get(kind, [])])
        return compare(op, self.value(kind, [one], 1), self.value(partner, among, 1))

    def distinct(self, kind: Kind, one: str, other: str) -> Form:
        left, right = self.value(kind, [one], 1), self.value(kind, [other], 1)
        negated = self.chance.random() < 0.7
        sql = f"({left.sql} IS {'NOT ' if negated else ''}DISTINCT FROM {right.sql})"
        return computed(sql, lambda x, y: (ordered(x) == ordered(y)) is negated, left, right)

    def listed(self, kind: Kind, one: str, other: str) -> Form:
        subject = self.value(kind, [one], 1)
        choices = [self.value(kind, [other], self.chance.choice([0, 0, 1])) for _ in range(self.chance.randint(1, 3))]
        negated = self.chance.random() < 0.3
        sql = f"({subject.sql} {'NOT ' if negated else ''}IN ({', '.join(each.sql for each in choices)}))"
        found = some([compare("=", subject, each) for each in choices], sql)
        return opposite(found, sql) if negated else found

    def between(self, kind: Kind, one: str, other: str) -> Form:
        subject, low, high = self.value(kind, [one], 1), self.value(kind, [other], 1), self.value(kind, [other], 1)
        negated = self.chance.random() < 0.3
        sql = f"({subject.sql} {'NOT ' if negated else ''}BETWEEN {low.sql} AND {high.sql})"
        found = every([compare(">=", subject, low), compare("<=", subject, high)], sql)
        return opposite(found, sql) if negated else found

    def row_values(self, one: str, other: str) -> Form:
        kinds: list[Kind] = self.chance.choices(["integer", "text", "date", "float"], k=2)
        left, right = ([self.value(kind, [role], 1) for kind in kinds] for role in (one, other))
        op = self.chance.choice(list(OPERATORS))
        written = [f"({', '.join(each.sql for each in row)})" for row in (left, right)]
        if self.chance.random() < 0.25:
            op = "="
            sql = f"({written[0]} IN ({written[1]}))"
        else:
            sql = f"({written[0]} {op} {written[1]})"
        pairs = list(zip(left, right, strict=True))
        if op in ("=", "!="):
            return (every if op == "=" else some)([compare(op, *pair) for pair in pairs], sql)
        first, last = pairs
        return some([compare(op[0], *first), every([compare("=", *first), compare(op, *last)])], sql)

    def interval(self, one: str, other: str) -> Form:
        """OVERLAPS and CONTAINS."""
        kind: Kind = self.chance.choice(["integer", "moment", "date", "text", "float"])
        period = self.chance.choice(["", "PERIOD "])
        (s, e), (t, f) = (
            [self.value(kind, [role], self.chance.choice([0, 1])) for _ in range(2)] for role in (one, other)
        )
        inner = f"{period}({t.sql}, {f.sql})"
        if kind == "moment" and self.chance.random() < 0.5:
            f = strictly("", lambda at: at + timedelta(hours=5), t)
            inner = f"({t.sql}, INTERVAL '5' HOUR)"
        shape = self.chance.choice(["overlaps", "contains", "holds"])
        if shape == "overlaps":
            sql, pairs = f"({period}({s.sql}, {e.sql}) OVERLAPS {inner})", [(s, f), (t, e), (s, e), (t, f)]
            return every([compare("<", *pair) for pair in pairs], sql)
        if shape == "contains":
            sql = f"({period}({s.sql}, {e.sql}) CONTAINS {inner})"
            return every([compare("<=", s, t), compare("<=", f, e), compare("<", t, f)], sql)
        negated = self.chance.random() < 0.3
        sql = f"({period}({s.sql}, {e.sql}) {'NOT ' if negated else ''}CONTAINS {t.sql})"
        found = every([compare("<=", s, t), compare("<", t, e)], sql)
        return opposite(found, sql) if negated else found

    def of_text(self, one: str, other: str) -> Form:
        text = self.value("text", [one], 1)
        shape = self.chance.choice(["like", "like", "like", "starts", "regexp"])
        if shape == "starts":
            name, part = self.chance.choice(["starts_with", "ends_with", "contains"]), self.value("text", [other], 0)
            return applied(f"{name}({text.sql}, {part.sql})", name, text, part)
        if shape == "regexp":
            regex = self.chance.choice(["^a", "b$", "[ab]{2}"])
            return applied(f"regexp_matches({text.sql}, '{regex}')", "regexp_matches", text, constant("", regex))
        written = self.chance.choice(
            ["'%'", "'a%'", "'%b'", "'_'", "'A_'", "'!%%' ESCAPE '!'", "column", "column || '%'"]
        )
        pattern = self.value("text", [other], 0)
        if not written.startswith("column"):
            plain = re.findall(r"'([^']*)'", written)
            given = [text, *(constant("", each) for each in plain)]
        elif written == "column":
            written, given = pattern.sql, [text, pattern]
        else:
            written = f"{pattern.sql} || '%'"
            given = [text, strictly("", lambda value: value + "%", pattern)]
        name, negated = self.chance.choice(["like", "ilike"]), self.chance.random() < 0.3
        sql = f"({text.sql} {'NOT ' if negated else ''}{name.upper()} {written})"
        found = applied(sql, name, *given)
        return opposite(found, sql) if negated else found

    def of_list(self, one: str, other: str) -> Form:
        values, sought = self.value("list", [one], 1), self.value("integer", [other], 1)
        if self.chance.random() < 0.5:
            return applied(f"({sought.sql} = ANY({values.sql}))", "list_contains", values, sought)
        return applied(f"list_contains({values.sql}, {sought.sql})", "list_contains", values, sought)

    def of_times(self, one: str, other: str) -> Form:
        """Differences of dates are days, of times lengths; text beside a date is one."""
        shape = self.chance.choice(["days", "length", "text"])
        if shape == "days":
            left, right = self.value("date", [one], 0), self.value("date", [other], 0)
            days, op = self.chance.choice([-1, 0, 1, 29, 30]), self.chance.choice(list(OPERATORS))
            found = lambda x, y: OPERATORS[op]((x - y).days, days)  # noqa: E731
            return strictly(f"({left.sql} - {right.sql} {op} {days})", found, left, right)
        if shape == "length":
            left, right = self.value("moment", [one], 0), self.value("moment", [other], 0)
            hours, op = self.chance.choice([0, 1, 24]), self.chance.choice(list(OPERATORS))
            found = lambda x, y: OPERATORS[op](x - y, timedelta(hours=hours))  # noqa: E731
            return strictly(f"({left.sql} - {right.sql} {op} INTERVAL '{hours}' HOUR)", found, left, right)
        day = self.chance.choice(DAYS)
        name = self.chance.choice(["d", "at"])
        return compare(self.chance.choice(list(OPERATORS)), column(one, name), constant(f"'{day}'", day))

    def of_one(self, role: str) -> Form:
        """Of one stream alone, or of none."""
        shape = self.chance.choice(["flag", "null", "float32", "constant" if self.constants else "flag"])
        if shape == "flag":
            return column(role, "b")
        if shape == "null":
            kinds: list[Kind] = ["integer", "float", "text", "list", "struct", "interval", "moment"]
            value = self.value(self.chance.choice(kinds), [role], 1)
            negated = self.chance.random() < 0.5
            sql = f"({value.sql} IS {'NOT ' if negated else ''}NULL)"
            return computed(sql, lambda given: (given is None) is not negated, value)
        if shape == "float32":
            number, op = self.chance.choice(HUNDREDTHS[1]), self.chance.choice(list(OPERATORS))
            return compare(op, column(role, "f"), constant(str(number), nearest(number, "f")))
        constants = {
            "1 = 1": True,
            "2 < 1": False,
            "NULL = 2": None,
            "TRUE": True,
            "'a' = 'a'": True,
            "NULL IS NULL": True,
        }
        text = self.chance.choice(list(constants))
        return constant(f"({text})", constants[text])
