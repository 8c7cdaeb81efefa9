"""Built-in functions of lists and structs. Elements are numbered from 1, from the end with negative numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import Argument, ArgumentError, common_type, constant_text, converted, plain, require
from operators.functions.builtin import Builtin
from operators.functions.composed_values import encoded
from operators.functions.families import Family

_LIST: tuple[str, tuple[Family, ...]] = ("a list", ("list",))
_WHOLE: tuple[str, tuple[Family, ...]] = ("a whole number", ("integer",))


def _field_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, [("a struct", ("struct",))])
    name = constant_text(arguments[1], "the field")
    kind = arguments[0].kind
    if pa.types.is_null(kind):
        return kind
    names = [field.name for field in kind.fields]
    if names.count(name) != 1:
        raise ArgumentError(f"the struct has no field {name}; its fields: {', '.join(names)}")
    return kind.field(name).type


def _field(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(columns[0].type):
        return columns[0]
    return pc.struct_field(columns[0], arguments[1].value)


def _element_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, (_LIST, _WHOLE))
    return pa.null() if arguments[0].family == "null" else arguments[0].kind.value_type


def _element(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    lists, places = columns
    if pa.types.is_null(lists.type) or pa.types.is_null(places.type):
        return pa.nulls(len(lists), kind)
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    wanted = places.fill_null(0).to_numpy(zero_copy_only=False)
    inside = np.where(wanted > 0, wanted - 1, lengths + wanted)
    known = (wanted != 0) & (inside >= 0) & (inside < lengths)
    return lists.flatten().take(pa.array(np.where(known, starts + inside, 0), mask=~known))


def _contains(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    lists, sought = columns
    if pa.types.is_null(lists.type) or pa.types.is_null(sought.type):
        return pa.nulls(len(lists), kind)
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(lists)), lengths)
    elements = lists.flatten()  # without what stands under a null
    target, argument = _element_types(elements.type, arguments[1])
    if pa.types.is_null(elements.type):  # of a stream whose types are not known yet
        held = pa.nulls(len(elements), target)
    else:
        held = elements.cast(target) if elements.type != target else elements
    given = converted(sought, argument, target).take(pa.array(owners))
    if pa.types.is_nested(target):
        held, given = encoded(held), encoded(given)
    same = pc.fill_null(pc.equal(held, given), False).to_numpy(zero_copy_only=False)
    found = np.zeros(len(lists), np.bool_)
    found[owners[same]] = True
    known = pc.and_(lists.is_valid(), sought.is_valid()).to_numpy(zero_copy_only=False)
    return pa.array(found, mask=~known)


def _element_types(kind: pa.DataType, argument: Argument) -> tuple[pa.DataType, Argument]:
    """The type in which elements and the value that is sought compare."""
    if kind == argument.kind or pa.types.is_null(kind):
        return argument.kind, argument
    types = pa.types
    family: Family = "string"
    if types.is_integer(kind) or types.is_boolean(kind):
        family = "integer"
    elif types.is_floating(kind):
        family = "float"
    elif types.is_decimal(kind):
        family = "decimal"
    elif types.is_timestamp(kind):
        family = "timestamp" if kind.tz is None else "zoned timestamp"
    elif types.is_date(kind):
        family = "date"
    elif types.is_binary(kind):
        family = "binary"
    return common_type([Argument(family, plain(kind)), argument]), argument


def _contains_type(arguments: Sequence[Argument]) -> pa.DataType:
    require(arguments, [_LIST])
    if "null" not in (arguments[0].family, arguments[1].family):
        _element_types(arguments[0].kind.value_type, arguments[1])
    return pa.bool_()


def _listed_type(arguments: Sequence[Argument]) -> pa.DataType:
    return pa.list_(common_type(arguments))


def _listed(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    parts = [converted(column, each, kind.value_type) for column, each in zip(columns, arguments, strict=True)]
    rows, count = len(columns[0]), len(columns)
    by_row = (np.arange(count) * rows)[None, :] + np.arange(rows)[:, None]
    elements = pa.concat_arrays(parts).take(pa.array(by_row.ravel()))
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1) * count, pa.int32()), elements)


COMPOSED_FUNCTIONS = (
    Builtin("list_value", "the list of its arguments: `[1, R.a]` in SQL", 1, None, _listed_type, _listed,
            keeps_null=False, aliases=("array",)),
    Builtin("struct_field", "a field of a struct: `R.s.field`, `R.s['field']`", 2, 2, _field_type, _field,
            aliases=("struct_extract",), written="{0}[{1}]"),
    Builtin("list_element", "an element of a list: `R.l[1]`; null beyond its ends", 2, 2, _element_type, _element,
            aliases=("list_extract", "array_extract", "element_at"), written="{0}[{1}]"),
    Builtin("list_contains", "whether a list holds a value", 2, 2, _contains_type, _contains,
            aliases=("array_contains", "list_has", "array_has")),
)  # fmt: skip
