"""Random conditions for hypothesis, as the oracle's trees: what a user may write about two rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests import oracle_terms as term
from tests.key_families import Family

_COALESCED = {"integers", "strings", "binaries", "instants"}
"""Families whose constants have the type of a column, so that coalesce does not change it."""

_OPS: tuple[term.Op, ...] = ("<", "<=", ">", ">=", "=", "!=")


@dataclass(frozen=True)
class Slot:
    """A column of that name on both sides, of types of one family."""

    name: str
    family: Family


# --- functions of values, and the same over Arrow arrays ------------------------------------------


def third(one: int, other: int) -> term.Truth:
    return (one + other) % 3 == 0


def _third(one: pa.Array, other: pa.Array) -> Any:
    return (one.to_numpy() + other.to_numpy()) % 3 == 0


def odd_and_known(number: int, known: Any) -> term.Truth:
    return None if known is None else number % 2 == 1


def _odd_and_known(number: pa.Array, known: pa.Array) -> pa.Array:
    odd = pa.array(np.asarray(number) % 2 == 1)
    return pc.if_else(pc.is_valid(known), odd, pa.scalar(None, pa.bool_()))


VECTORISED: dict[Callable[..., Any], Callable[..., Any]] = {third: _third, odd_and_known: _odd_and_known}


# --- values ---------------------------------------------------------------------------------------


@st.composite
def shifted(draw: st.DrawFn, side: int, slot: Slot) -> term.Value:
    """A column, as it is or moved and scaled as its family allows: linear in it."""
    column: term.Value = term.Column(side, slot.name)
    algebra = slot.family.algebra
    if slot.family.name in _COALESCED and draw(st.integers(0, 5)) == 0:
        constants = [value for value in slot.family.constants if not isinstance(value, float)]
        column = term.Apply("coalesce", (column, term.Constant(draw(st.sampled_from(constants)))))
    if algebra in ("none", "times") or draw(st.integers(0, 2)) > 0:
        return column
    shift = term.Constant(draw(st.sampled_from(slot.family.shifts)))
    if algebra == "instants":
        return term.Arithmetic(draw(st.sampled_from(["+", "-"])), column, shift)
    if draw(st.booleans()):
        factors = slot.family.shifts if algebra in ("numbers", "decimals") else (-1, 2)
        factor = term.Constant(draw(st.sampled_from(factors)))
        shape = draw(st.sampled_from(["column first", "constant first", "negative"]))
        if shape == "negative":
            column = term.Negative(column)
        else:
            column = term.Arithmetic("*", *((column, factor) if shape == "column first" else (factor, column)))
        if draw(st.booleans()):
            return column
    if draw(st.booleans()):
        return term.Arithmetic(draw(st.sampled_from(["+", "-"])), column, shift)
    return term.Arithmetic("-", shift, column)


# --- conditions -----------------------------------------------------------------------------------


@st.composite
def between_streams(draw: st.DrawFn, slots: tuple[Slot, ...]) -> term.Condition:
    """A comparison of a column of one stream with one of the other, such as an index searches by."""
    slot = draw(st.sampled_from(slots))
    sides = draw(st.sampled_from([(0, 1), (1, 0)]))
    one, other = (draw(shifted(side, slot)) for side in sides)
    shapes = ["compare", "compare", "compare", "between", "distinct", draw(st.sampled_from(["overlaps", "contains"]))]
    if slot.family.algebra != "none":
        shapes.append("band")
    shape = draw(st.sampled_from(shapes))
    if shape == "compare":
        return term.Compare(draw(st.sampled_from(_OPS)), one, other)
    if shape == "between":
        return term.Between(one, other, draw(shifted(sides[1], slot)))
    if shape == "overlaps":
        return term.Overlaps((one, draw(shifted(sides[0], slot))), (other, draw(shifted(sides[1], slot))))
    if shape == "contains":
        inner = (other, draw(shifted(sides[1], slot))) if draw(st.booleans()) else other
        return term.Contains((one, draw(shifted(sides[0], slot))), inner)
    if shape == "distinct":
        distinct = term.Distinct(one, other)
        return term.Not(distinct) if draw(st.integers(0, 2)) else distinct
    difference = term.Arithmetic("-", term.Column(sides[0], slot.name), term.Column(sides[1], slot.name))
    width = term.Constant(draw(st.sampled_from([s for s in slot.family.shifts if s >= type(s)(0)])))
    within: term.Op = draw(st.sampled_from(["<=", "<=", "<", ">", "="]))
    return term.Compare(within, term.Absolute(difference), width)


@st.composite
def of_one_stream(draw: st.DrawFn, slots: tuple[Slot, ...], side: int | None = None) -> term.Condition:
    """A condition on one stream alone."""
    slot = draw(st.sampled_from(slots))
    column = term.Column(draw(st.sampled_from([0, 1])) if side is None else side, slot.name)
    constants = st.sampled_from(slot.family.constants).map(term.Constant)
    shape = draw(st.sampled_from(["compare", "compare", "in", "null", "between"]))
    if shape == "compare":
        return term.Compare(draw(st.sampled_from(_OPS)), column, draw(constants))
    if shape == "between":
        return term.Between(column, draw(constants), draw(constants))
    if shape == "in":
        return term.In(column, tuple(draw(st.lists(constants, min_size=1, max_size=3))))
    return term.IsNull(column)


@st.composite
def of_pairs(draw: st.DrawFn, slots: tuple[Slot, ...]) -> term.Condition:
    """A condition that no index can search by: it has to be evaluated on each pair."""
    ids = (term.Column(0, "id"), term.Column(1, "id"))
    slot = draw(st.sampled_from(slots))
    known = term.Column(draw(st.sampled_from([0, 1])), slot.name)
    shapes: list[term.Condition] = [
        term.Function(third, ids),
        term.Function(odd_and_known, (ids[draw(st.sampled_from([0, 1]))], known)),
    ]
    numbers = [each.name for each in slots if each.family.algebra == "numbers"]
    if numbers:
        name, again = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
        x, y = term.Column(0, name), term.Column(1, again)
        op: term.Op = draw(st.sampled_from(_OPS))
        shapes += [
            term.Compare(op, term.Arithmetic("*", x, y), term.Constant(1)),
            term.Compare(op, term.Arithmetic("+", x, term.Column(0, again)), y),
            term.Compare(op, term.Absolute(x), term.Arithmetic("+", y, term.Column(0, "id"))),
            term.IsNull(term.Arithmetic("-", x, y)),
        ]
    return draw(st.sampled_from(shapes))


def conditions(slots: tuple[Slot, ...]) -> st.SearchStrategy[term.Condition]:
    """Conjunctions, alternatives of conjunctions, negations, nested once more at most."""
    atoms = st.one_of(
        between_streams(slots), between_streams(slots), between_streams(slots), of_one_stream(slots), of_pairs(slots)
    )
    truths = st.builds(term.IsTruth, atoms, st.booleans())
    parts = st.one_of(atoms, atoms.map(term.Not), atoms, truths | truths.map(term.Not))
    conjunctions = st.lists(parts, min_size=1, max_size=4).map(_and)
    alternatives = st.lists(conjunctions, min_size=2, max_size=3).map(lambda found: term.Or(tuple(found)))
    mixed = st.tuples(parts, alternatives | alternatives.map(term.Not)).map(term.And)
    return st.one_of(conjunctions, conjunctions, alternatives, mixed, conjunctions.map(term.Not))


def _and(parts: list[term.Condition]) -> term.Condition:
    return parts[0] if len(parts) == 1 else term.And(tuple(parts))


def uses_functions(condition: term.Condition) -> bool:
    """Whether a function is among its parts."""
    match condition:
        case term.Function():
            return True
        case term.And(parts) | term.Or(parts):
            return any(map(uses_functions, parts))
        case term.Not(part) | term.IsTruth(part):
            return uses_functions(part)
    return False
