"""Built-in functions of text. Lengths and places count characters, from 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import Argument, converted
from operators.functions.builtin import Builtin, Compute, by_distinct, taking
from operators.functions.families import Family

_TEXT: tuple[str, tuple[Family, ...]] = ("text (CAST it AS VARCHAR)", ("string",))
_WHOLE: tuple[str, tuple[Family, ...]] = ("a whole number", ("integer",))
_ANY: tuple[Family, ...] = ("integer", "decimal", "string", "date", "timestamp", "time of day")


def _of_first(compute: Callable[..., pa.Array], **options: Any) -> Compute:
    return lambda columns, arguments, kind: compute(columns[0], **options).cast(kind)


def _with_parameters(compute: Callable[[pa.Array, Sequence[Any]], pa.Array]) -> Compute:
    """A function whose second and further arguments are parameters of Arrow's."""

    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        first = columns[0]
        if first.type == pa.null() or any(column.type == pa.null() for column in columns):
            return pa.nulls(len(first), kind)
        return by_distinct(
            len(first), columns[1:], kind, lambda rows, values: compute(first.take(pa.array(rows)), values)
        )

    return run


def _like(text: pa.Array, values: Sequence[Any], *, fold: bool) -> pa.Array:
    pattern, escape = str(values[0]), str(values[1]) if len(values) > 1 else ""
    return pc.match_substring_regex(text, like_regex(pattern, escape), ignore_case=fold)


def like_regex(pattern: str, escape: str = "") -> str:
    """LIKE's pattern as a regular expression: % is any text, _ one character."""
    found, escaped = "", False
    for character in pattern:
        if not escaped and escape and character == escape:
            escaped = True
            continue
        any_text = {"%": ".*", "_": "."}.get(character) if not escaped else None
        found += any_text or re.escape(character)
        escaped = False
    return f"(?s)\\A{found}\\z"


def _substring(text: pa.Array, values: Sequence[Any]) -> pa.Array:
    """From a place on; a negative place counts from the end; place 0 is the one before the first."""
    start = int(values[0])
    length = None if len(values) < 2 else int(values[1])
    if start < 0:
        lengths = pc.utf8_length(text).to_numpy(zero_copy_only=False)
        if pc.any(pc.is_null(text)).as_py():
            lengths = pc.utf8_length(text).fill_null(0).to_numpy(zero_copy_only=False)
        return by_distinct(len(text), [pa.array(lengths)], pa.string(), lambda rows, sizes: _cut(
            text.take(pa.array(rows)), int(str(sizes[0])) + start, length))  # fmt: skip
    return _cut(text, start - 1, length)


def _cut(text: pa.Array, start: int, length: int | None) -> pa.Array:
    """Characters from `start` (from 0) on; those before the first do not exist, but count in the length."""
    stop = None if length is None else start + length
    if stop is not None and stop <= max(start, 0):
        return pc.if_else(pc.is_valid(text), "", pa.scalar(None, pa.string()))
    return pc.utf8_slice_codeunits(text, max(start, 0), stop)


def _left(text: pa.Array, values: Sequence[Any]) -> pa.Array:
    return pc.utf8_slice_codeunits(text, 0, int(values[0]))


def _right(text: pa.Array, values: Sequence[Any]) -> pa.Array:
    count = int(values[0])
    if count == 0:
        return _cut(text, 0, 0)
    return pc.utf8_slice_codeunits(text, -count, None)  # a negative count leaves that many out


def _place(text: pa.Array, values: Sequence[Any]) -> pa.Array:
    sought = str(values[0])
    if not sought:
        return pc.if_else(pc.is_valid(text), 1, pa.scalar(None, pa.int64()))
    before = pc.list_element(pc.split_pattern(text, sought, max_splits=1), 0)
    found = pc.match_substring(text, sought)
    return pc.if_else(found, pc.add(pc.utf8_length(before).cast(pa.int64()), 1), pa.scalar(0, pa.int64()))


def _replace(text: pa.Array, values: Sequence[Any]) -> pa.Array:
    sought, instead = map(str, values)
    return pc.replace_substring(text, sought, instead) if sought else text


def _pad(left: bool) -> Callable[[pa.Array, Sequence[Any]], pa.Array]:
    def run(text: pa.Array, values: Sequence[Any]) -> pa.Array:
        width, filling = max(int(values[0]), 0), str(values[1]) if len(values) > 1 else " "
        missing = pc.subtract(width, pc.utf8_length(text).cast(pa.int64()))
        if not filling:
            return pc.utf8_slice_codeunits(text, 0, width)

        def padded(rows: np.ndarray, counts: Sequence[Any]) -> pa.Array:
            mine, count = text.take(pa.array(rows)), int(counts[0])
            if count <= 0:
                return _cut(mine, 0, width)
            added = (filling * (count // len(filling) + 1))[:count]
            return pc.binary_join_element_wise(*((added, mine) if left else (mine, added)), "")

        return by_distinct(len(text), [missing], pa.string(), padded)

    return run


def _trim(side: str) -> Compute:
    plain = {"both": pc.utf8_trim, "left": pc.utf8_ltrim, "right": pc.utf8_rtrim}[side]
    cut = _with_parameters(lambda text, values: plain(text, characters=values[0]) if values[0] else text)

    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        if columns[0].type == pa.null():
            return pa.nulls(len(columns[0]), kind)
        if len(columns) == 1:
            return plain(columns[0], characters=" ").cast(kind)
        return cut(columns, arguments, kind)

    return run


def _joined(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    parts = [pa.nulls(len(one), kind) if one.type == pa.null() else one for one in columns]
    return pc.binary_join_element_wise(*parts, pa.scalar("" if kind == pa.string() else b"", kind))


def _joined_type(arguments: Sequence[Argument]) -> pa.DataType:
    binary = any(each.family == "binary" for each in arguments)
    taking(None, *[("binary", ("binary",)) if binary else _TEXT] * len(arguments))(arguments)
    return pa.binary() if binary else pa.string()


def _concat(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    parts = [pc.fill_null(converted(one, each, kind), "") for one, each in zip(columns, arguments, strict=True)]
    return pc.binary_join_element_wise(*parts, "")


def _length(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
    one = columns[0]
    types = pa.types
    if types.is_null(one.type):
        return pa.nulls(len(one), kind)
    if types.is_list(one.type) or types.is_large_list(one.type) or types.is_fixed_size_list(one.type):
        return pc.list_value_length(one).cast(kind)
    return (pc.utf8_length(one) if types.is_string(one.type) else pc.binary_length(one)).cast(kind)


def _text_or_null(compute: Callable[[pa.Array], pa.Array]) -> Compute:
    def run(columns: Sequence[pa.Array], arguments: Sequence[Argument], kind: pa.DataType) -> pa.Array:
        return pa.nulls(len(columns[0]), kind) if columns[0].type == pa.null() else compute(columns[0]).cast(kind)

    return run


_STRING, _INT, _BOOL = pa.string(), pa.int64(), pa.bool_()

TEXT_FUNCTIONS = (
    Builtin("lower", "the text in lower case", 1, 1, taking(_STRING, _TEXT), _text_or_null(pc.utf8_lower),
            aliases=("lcase",)),
    Builtin("upper", "the text in upper case", 1, 1, taking(_STRING, _TEXT), _text_or_null(pc.utf8_upper),
            aliases=("ucase",)),
    Builtin("length", "characters of a text, bytes of binary, elements of a list", 1, 1,
            taking(_INT, ("text, binary or a list", ("string", "binary", "list"))), _length,
            aliases=("len", "char_length", "character_length", "array_length", "cardinality", "list_length", "size")),
    Builtin("octet_length", "bytes of a text or of binary", 1, 1,
            taking(_INT, ("text or binary", ("string", "binary"))), _text_or_null(pc.binary_length),
            aliases=("strlen",)),
    Builtin("reverse", "the text backwards", 1, 1, taking(_STRING, _TEXT), _text_or_null(pc.utf8_reverse)),
    Builtin("trim", "the text without spaces, or the given characters, at both ends", 1, 2,
            taking(_STRING, _TEXT, _TEXT), _trim("both"), aliases=("btrim",)),
    Builtin("ltrim", "… at the start", 1, 2, taking(_STRING, _TEXT, _TEXT), _trim("left")),
    Builtin("rtrim", "… at the end", 1, 2, taking(_STRING, _TEXT, _TEXT), _trim("right")),
    Builtin("substring", "the part from a place on, of a length; a negative place counts from the end", 2, 3,
            taking(_STRING, _TEXT, _WHOLE, _WHOLE), _with_parameters(_substring), aliases=("substr", "mid")),
    Builtin("left", "the first characters; a negative number leaves out the last", 2, 2,
            taking(_STRING, _TEXT, _WHOLE), _with_parameters(_left)),
    Builtin("right", "the last characters; a negative number leaves out the first", 2, 2,
            taking(_STRING, _TEXT, _WHOLE), _with_parameters(_right)),
    Builtin("replace", "the text with each occurrence of the second replaced by the third", 3, 3,
            taking(_STRING, _TEXT, _TEXT, _TEXT), _with_parameters(_replace)),
    Builtin("strpos", "where the second text first occurs in the first, or 0", 2, 2,
            taking(_INT, _TEXT, _TEXT), _with_parameters(_place), aliases=("instr",)),
    Builtin("lpad", "the text filled up to a length at the start, or cut to it", 2, 3,
            taking(_STRING, _TEXT, _WHOLE, _TEXT), _with_parameters(_pad(left=True))),
    Builtin("rpad", "… at the end", 2, 3,
            taking(_STRING, _TEXT, _WHOLE, _TEXT), _with_parameters(_pad(left=False))),
    Builtin("repeat", "the text so many times", 2, 2, taking(_STRING, _TEXT, _WHOLE), _with_parameters(
        lambda text, values: pc.binary_repeat(text, max(int(values[0]), 0)))),
    Builtin("starts_with", "whether the first text starts with the second", 2, 2, taking(_BOOL, _TEXT, _TEXT),
            _with_parameters(lambda text, values: pc.starts_with(text, values[0])), aliases=("startswith", "prefix")),
    Builtin("ends_with", "whether it ends with it", 2, 2, taking(_BOOL, _TEXT, _TEXT),
            _with_parameters(lambda text, values: pc.ends_with(text, values[0])), aliases=("endswith", "suffix")),
    Builtin("contains", "whether it contains it", 2, 2, taking(_BOOL, _TEXT, _TEXT),
            _with_parameters(lambda text, values: pc.match_substring(text, values[0]))),
    Builtin("like", "% is any text, _ one character", 2, 3, taking(_BOOL, _TEXT, _TEXT, _TEXT),
            _with_parameters(lambda text, values: _like(text, values, fold=False)), written="{0} LIKE {1}"),
    Builtin("ilike", "the same in any case", 2, 3, taking(_BOOL, _TEXT, _TEXT, _TEXT),
            _with_parameters(lambda text, values: _like(text, values, fold=True)), written="{0} ILIKE {1}"),
    Builtin("regexp_matches", "whether a regular expression (RE2) matches a part of the text", 2, 2,
            taking(_BOOL, _TEXT, _TEXT),
            _with_parameters(lambda text, values: pc.match_substring_regex(text, values[0])),
            aliases=("regexp_like", "rlike")),
    Builtin("||", "two texts, or two binaries, one after the other", 2, 2, _joined_type, _joined, written="{0} || {1}"),
    Builtin("concat", "texts one after the other; null is empty", 1, None,
            lambda arguments: taking(_STRING, *[_TEXT] * len(arguments))(arguments), _concat, keeps_null=False),
)  # fmt: skip
