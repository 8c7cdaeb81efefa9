"""Every way to write one condition: random rewordings of a meaning that keep it exactly.

A meaning is a tree of `tests/oracle_terms.py`; a rewording is another tree that is true, false and unknown for the same
pairs of rows. Each rule below is exact in three-valued logic and, since it only swaps operands and changes signs, in
float64 as well. Rules that move a term across the comparison sign are exact for integers, decimals and times alone:
`Rewording.exact` allows them.

    x < y             y > x;  NOT (x >= y);  -x > -y;  x <= y AND x != y
    x = y             x BETWEEN y AND y;  x IN (y);  x <= y AND NOT (x < y)
    abs(x) <= c       x BETWEEN -c AND c;  x <= c AND -c <= x;  NOT (x > c OR x < -c)
    x IN (c, d)       x = d OR x = c;  NOT (x != c AND x != d)
    x - y <= c        -(y - x) <= c;  x + -y <= c;  exact: x <= y + c;  x - c <= y
    A AND B           B AND A;  NOT (NOT A OR NOT B)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Literal

from tests import oracle_terms as term
from tests.key_families import Family
from tests.oracle_terms import Absolute, And, Arithmetic, Between, Column, Compare, Constant, In, Negative, Not, Or

MIRRORED: dict[term.Op, term.Op] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
NEGATED: dict[term.Op, term.Op] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}

Sort = Literal["number", "length", "instant", "other"]
_SORTS: dict[str, Sort] = {
    "numbers": "number", "decimals": "number", "durations": "length", "instants": "instant", "times": "instant",
    "none": "other",
}  # fmt: skip


MOST_JUNCTIONS = 6
"""More would only take longer: the cost of a normal form grows exponentially with the number of ORs."""


def negative(constant: Constant) -> Constant:
    """The constant with the other sign."""
    return Constant(-constant.written)


@dataclass
class Rewording:
    """Rewords conditions on columns of one family.

    exact:     terms may move across a comparison sign.
    one_range: only rules that keep a conjunction of bounds one, and abs by itself on its side of the comparison sign,
               as interval joins and WHERE need it.
    """

    chance: Random
    family: Family
    exact: bool
    one_range: bool = False
    keep_values: bool = False

    def condition(self, meaning: term.Condition) -> term.Condition:
        """The same condition in other words, with at most `MOST_JUNCTIONS` of AND and OR."""
        # Half of the wordings leave values as they are: what is written on a value hides special forms, such as
        # a bare constant beside abs, from the code that reads them.
        self.keep_values = self.chance.random() < 0.5
        while junctions(written := self._reworded(meaning, rounds=3)) > max(MOST_JUNCTIONS, junctions(meaning)):
            pass
        return written

    def _reworded(self, node: term.Condition, rounds: int) -> term.Condition:
        for _ in range(self.chance.randint(0, max(rounds, 0))):
            node = self.chance.choice(self._rules(node))()
        match node:
            case And(parts):
                node = And(tuple(self._reworded(part, rounds - 1) for part in parts))
            case Or(parts):
                node = Or(tuple(self._reworded(part, rounds - 1) for part in parts))
            case Not(part):
                node = Not(self._reworded(part, rounds - 1))
            case Compare(op, one, other):
                node = Compare(op, self.value(one), self.value(other))
            case Between(operand, low, high):
                node = Between(self.value(operand), self.value(low), self.value(high))
            case In(operand, choices):
                node = In(self.value(operand), tuple(map(self.value, choices)))
        return node

    def _rules(self, node: term.Condition) -> list[Callable[[], term.Condition]]:
        rules: list[Callable[[], term.Condition]] = [lambda: Not(Not(node))]
        if not self.one_range and not isinstance(node, And | Or):
            rules += [lambda: And((node, node)), lambda: Or((node, node))]
        match node:
            case Compare(op, one, other):
                plain: list[Callable[[], term.Condition]] = [
                    lambda: Compare(MIRRORED[op], other, one),
                    lambda: Not(Compare(NEGATED[op], one, other)),
                ]
                rules += 4 * plain
                rules += [
                    *self._signs(op, one, other),
                    *self._splits(op, one, other),
                    *self._bands(op, one, other),
                    *self._moves(op, one, other),
                ]
            case Between(operand, low, high):
                rules += [
                    lambda: And((Compare(">=", operand, low), Compare("<=", operand, high))),
                    lambda: And((Compare(">=", high, operand), Compare("<=", low, operand))),
                    lambda: Not(Or((Compare("<", operand, low), Compare(">", operand, high)))),
                ]
                if all(self.sort(each) in ("number", "length") for each in (operand, low, high)):
                    rules += [lambda: Between(Negative(operand), Negative(high), Negative(low))]
            case In(operand, choices):
                turned = choices[::-1]
                rules += [
                    lambda: In(operand, turned),
                    lambda: _or([Compare("=", operand, each) for each in turned]),
                    lambda: Not(_and([Compare("!=", operand, each) for each in choices])),
                ]
                if not self.one_range:
                    rules += [lambda: In(operand, (*choices, choices[0]))]
            case And(parts):
                mixed = self._mixed(parts)
                rules += [lambda: And(mixed), lambda: Not(Or(tuple(Not(part) for part in mixed)))]
                match parts:
                    case (first, Or(alternatives)) if not self.one_range:
                        rules += [lambda: Or(tuple(And((first, each)) for each in alternatives))]
            case Or(parts):
                mixed = self._mixed(parts)
                rules += [lambda: Or(mixed), lambda: Not(And(tuple(Not(part) for part in mixed)))]
            case Not(And(parts)):
                rules += [lambda: Or(tuple(Not(part) for part in parts))]
            case Not(Or(parts)):
                rules += [lambda: And(tuple(Not(part) for part in parts))]
            case Not(Not(part)):
                rules += [lambda: part]
        return rules

    def _signs(self, op: term.Op, one: term.Value, other: term.Value) -> list[Callable[[], term.Condition]]:
        if not {self.sort(one), self.sort(other)} <= {"number", "length"} or self._fixed(one, other):
            return []
        return [lambda: Compare(MIRRORED[op], Negative(one), Negative(other))]

    def _splits(self, op: term.Op, one: term.Value, other: term.Value) -> list[Callable[[], term.Condition]]:
        """One comparison as several: closed and strict, equal and not."""

        def as_(sign: term.Op) -> term.Condition:
            return Compare(sign, one, other)

        if op == "=":
            return [
                lambda: And((as_("<="), as_(">="))),
                lambda: Between(one, other, other),
                lambda: In(one, (other,)),
                lambda: Not(Or((as_("<"), as_(">")))),
                lambda: And((as_("<="), Not(as_("<")))),
            ]
        if op == "!=":
            apart: list[Callable[[], term.Condition]] = [lambda: Or((as_("<"), as_(">")))]
            return apart if self.one_range else [*apart, lambda: Not(In(one, (other, other)))]
        if self.one_range:
            return []
        if op in ("<", ">"):
            closed: term.Op = "<=" if op == "<" else ">="
            return [lambda: And((as_(closed), as_("!=")))]
        strict: term.Op = "<" if op == "<=" else ">"
        return [lambda: Or((as_(strict), as_("=")))]

    def _bands(self, op: term.Op, one: term.Value, other: term.Value) -> list[Callable[[], term.Condition]]:
        """``abs(x) OP c`` without abs."""
        match one, other:
            case Constant(), Absolute():
                return self._bands(MIRRORED[op], other, one)
            case Absolute(x), Constant(written) as c:
                least = negative(c)
                if op == "<=":
                    return [
                        lambda: Between(x, least, c),
                        lambda: And((Compare("<=", x, c), Compare("<=", least, x))),
                        lambda: Not(Or((Compare(">", x, c), Compare("<", x, least)))),
                    ]
                if op == "<":
                    return [lambda: And((Compare(">", x, least), Compare("<", x, c)))]
                if op == ">":
                    return [
                        lambda: Or((Compare(">", x, c), Compare(">", least, x))),
                        lambda: Not(Between(x, least, c)),
                    ]
                if op == ">=":
                    return [lambda: Or((Compare("<=", x, least), Compare(">=", x, c)))]
                if written >= type(written)(0) and not self.one_range:
                    return [lambda: In(x, (c, least)) if op == "=" else Not(In(x, (c, least)))]
        return []

    def _moves(self, op: term.Op, one: term.Value, other: term.Value) -> list[Callable[[], term.Condition]]:
        """Terms on the other side of the comparison sign."""
        if not self.exact or self.family.algebra == "times" or self._fixed(one, other):
            return []
        rules: list[Callable[[], term.Condition]] = []
        if self.sort(one) == self.sort(other) != "other":
            zero = Constant(timedelta(0) if self.sort(one) in ("length", "instant") else 0)
            rules += [lambda: Compare(op, Arithmetic("-", one, other), zero)]
        match one:
            case Arithmetic("-", x, y) if self.sort(other) != "instant":
                rules += [lambda: Compare(op, x, Arithmetic("+", y, other))]
                rules += [lambda: Compare(op, Arithmetic("-", x, other), y)]
            case Arithmetic("+", x, y) if self.sort(y) != "instant":
                rules += [lambda: Compare(op, x, Arithmetic("-", other, y))]
        return rules

    def value(self, node: term.Value, rounds: int = 2) -> term.Value:
        """The same value with other signs, or with the operands of a sum in the other order."""
        if self.keep_values:
            return node
        for _ in range(self.chance.randint(0, max(rounds, 0))):
            node = self.chance.choice(self._value_rules(node))()
        match node:
            case Arithmetic(sign, one, other):
                return Arithmetic(sign, self.value(one, rounds - 1), self.value(other, rounds - 1))
            case Negative(operand):
                return Negative(self.value(operand, rounds - 1))
            case Absolute(operand):
                return Absolute(self.value(operand, rounds - 1))
        return node

    def _value_rules(self, node: term.Value) -> list[Callable[[], term.Value]]:
        rules: list[Callable[[], term.Value]] = [lambda: node]
        sort = self.sort(node)
        if sort in ("number", "length"):
            zero = Constant(0 if sort == "number" else timedelta(0))
            if not self._fixed(node):
                rules += [lambda: Negative(Negative(node))]
            match node:
                case Constant():
                    rules += [lambda: Negative(negative(node))]
                case Negative(operand):
                    rules += [lambda: Arithmetic("-", zero, operand)]
                    if not self.one_range:
                        rules += [
                            lambda: Arithmetic("*", operand, Constant(-1)),
                            lambda: Arithmetic("*", Constant(-1), operand),
                        ]
                case Absolute(operand):
                    rules += [lambda: Absolute(Negative(operand))]
        match node:
            case Arithmetic("+", one, other):
                rules += [lambda: Arithmetic("+", other, one)]
            case Arithmetic("-", one, other):
                if sort != "instant":
                    rules += [lambda: Negative(Arithmetic("-", other, one))]
                if self.sort(other) != "instant":
                    rules += [lambda: Arithmetic("+", one, Negative(other))]
        return rules

    def sort(self, node: term.Value) -> Sort:
        """What a value measures, which decides what may be computed with it."""
        match node:
            case Column():
                return _SORTS[self.family.algebra]
            case Constant(written):
                if isinstance(written, timedelta):
                    return "length"
                if isinstance(written, int | float | Decimal):
                    return "number"
                return "instant" if isinstance(written, datetime | time) else "other"
            case Negative(operand) | Absolute(operand):
                return self.sort(operand)
            case Arithmetic(_, one, other):
                sorts = {self.sort(one), self.sort(other)}
                if sorts == {"instant"} or sorts == {"length", "number"}:
                    return "length"
                return "instant" if "instant" in sorts else sorts.pop()
        raise TypeError(node)

    def _fixed(self, *values: term.Value) -> bool:
        return self.one_range and any(isinstance(value, Absolute) for value in values)

    def _mixed(self, parts: tuple[term.Condition, ...]) -> tuple[term.Condition, ...]:
        return tuple(self.chance.sample(parts, len(parts)))


def junctions(node: term.Condition) -> int:
    """How many AND and OR a condition has."""
    match node:
        case And(parts) | Or(parts):
            return len(parts) - 1 + sum(map(junctions, parts))
        case Not(part):
            return junctions(part)
    return 0


def _and(parts: list[Any]) -> term.Condition:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _or(parts: list[Any]) -> term.Condition:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


# --- meanings -------------------------------------------------------------------------------------


@dataclass
class Meanings:
    """Random conditions about a column `a` of each side, each written in one plain way."""

    chance: Random
    family: Family

    def any(self) -> term.Condition:
        """An atom, or two or three with AND, OR and NOT."""
        atoms = [self.atom() for _ in range(3)]
        atoms = [Not(atom) if self.chance.random() < 0.2 else atom for atom in atoms]
        return self.chance.choice(
            [
                atoms[0], atoms[0], atoms[0], And(tuple(atoms[:2])), Or(tuple(atoms[:2])),
                And((atoms[0], Or(tuple(atoms[1:])))), Or((atoms[0], And(tuple(atoms[1:])))),
                Not(And((atoms[0], Or(tuple(atoms[1:]))))),
            ]
        )  # fmt: skip

    def atom(self) -> term.Condition:
        """A comparison between the streams, or of one with constants."""
        if self.chance.random() < 0.3:
            return self.of_one(self.chance.choice([0, 1]))
        return self.chance.choice(self._between_streams())()

    def of_one(self, side: int) -> term.Condition:
        """A comparison of one side's column with constants."""
        x, op = Column(side, "a"), self._operator()
        choices: list[Callable[[], term.Condition]] = [
            lambda: Compare(op, x, self.constant()),
            lambda: Compare(op, x, self.constant()),
            lambda: Between(x, self.constant(), self.constant()),
            lambda: In(x, (self.constant(), self.constant())),
            lambda: term.IsNull(x),
        ]
        if self.family.algebra in ("numbers", "decimals", "durations"):
            choices += 2 * [lambda: Compare(op, Absolute(self.shifted(x)), self.shift())]
        return self.chance.choice(choices)()

    def _between_streams(self) -> list[Callable[[], term.Condition]]:
        x, y = (Column(side, "a") for side in self.chance.choice([(0, 1), (1, 0)]))
        op = self._operator()
        choices: list[Callable[[], term.Condition]] = [
            lambda: Compare(op, x, y),
            lambda: Compare(op, self.shifted(x), self.shifted(y)),
            lambda: Between(x, self.shifted(y), self.shifted(y)),
            lambda: Between(self.constant(), x, y),
            lambda: In(x, (y, self.constant())),
        ]
        difference = Arithmetic("-", x, y)
        if self.family.algebra != "none":
            of_difference: list[Callable[[], term.Condition]] = [
                lambda: Compare(op, Absolute(difference), self.shift()),
                lambda: Compare(op, difference, self.shift()),
                lambda: Between(difference, self.shift(), self.shift()),
                lambda: Between(Absolute(difference), self.shift(), self.shift()),
                lambda: In(difference, (self.shift(), self.shift())),
            ]
            choices += 2 * of_difference + 4 * of_difference[:1]
        if self.family.algebra not in ("none", "times"):
            choices += [lambda: Compare(op, Absolute(Arithmetic("-", self.shifted(x), y)), self.shift())]
        return choices

    def near(self) -> term.Condition:
        """Bounds of the difference of both columns from below and from above, as an interval join needs them."""
        x, y = (Column(side, "a") for side in self.chance.choice([(0, 1), (1, 0)]))
        within: term.Op = self.chance.choice(["<=", "<"])
        difference, width = Arithmetic("-", x, y), self.shift()
        choices: list[term.Condition] = [
            Compare(within, Absolute(difference), width),
            Compare(within, Absolute(Arithmetic("-", self.shifted(x), y)), width),
            Between(difference, self.shift(), self.shift()),
            Between(x, Arithmetic("-", y, self.shift()), Arithmetic("+", y, self.shift())),
            And((Compare(within, difference, width), Compare(">", x, Arithmetic("-", y, self.shift())))),
            Compare("=", x, Arithmetic("+", y, self.shift())),
        ]
        return self.chance.choice(choices)

    def _operator(self) -> term.Op:
        return self.chance.choice(list(MIRRORED))

    def shifted(self, column: Column) -> term.Value:
        """The column, or the column moved by a constant."""
        if self.family.algebra in ("none", "times") or self.chance.random() < 0.5:
            return column
        return Arithmetic(self.chance.choice(["+", "-"]), column, self.shift())

    def constant(self) -> Constant:
        """A value to compare the column with."""
        return Constant(self.chance.choice(self.family.constants))

    def shift(self) -> Constant:
        """A length or number to add to the column, or to compare a difference with."""
        return Constant(self.chance.choice(self.family.shifts))
