"""Parses SQL text with sqlglot, and finds the place of each node in the text."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from operators.query.errors import QueryError, at_place

_SYMBOLS = {
    "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "=", "NEQ": "!=", "ADD": "+", "SUB": "-", "MUL": "*",
    "DIV": "/", "AND": "AND", "OR": "OR", "NOT": "NOT", "BETWEEN": "BETWEEN", "IN": "IN",
}  # fmt: skip
_PERIODS = {
    "CONTAINS": "contains(text, part), list_contains(list, value) or (start, end) CONTAINS value",
    "PRECEDES": "R.end <= S.start",
    "SUCCEEDS": "R.start >= S.end",
    "EQUALS": "(R.start, R.end) = (S.start, S.end)",
}
"""What to write for predicates of periods that are not understood, or not where they stand."""
_HINTS = {
    ",": "conditions are joined with AND",
    "&&": "write AND",
    "=>": "write >=",
    "XOR": "write (one) != (other) for two conditions, xor(one, other) for the bits of integers",
    "~": "write regexp_matches(text, pattern)",
    **{word: f"write {instead}" for word, instead in _PERIODS.items()},
    "WHERE": "a condition is written without WHERE",
    "ON": "a condition is written without ON",
}


_WORDS = (
    *("SELECT", "FROM", "JOIN", "WHERE", "BETWEEN", "WINDOW"),
    *("INNER", "OUTER", "RIGHT", "CROSS", "DISTINCT", "INTERVAL"),
)


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CONDITIONS = (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike, exp.In, exp.Between)


class InterlaceDialect(Dialect):
    """Standard SQL in which names may also be quoted as in Spark, with backticks."""

    class Tokenizer(tokens.Tokenizer):
        """Splits the text into tokens; both kinds of quotes make a name."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
        KEYWORDS: ClassVar = {
            **{word: token for word, token in tokens.Tokenizer.KEYWORDS.items() if word != "DIV"},
            "**": tokens.TokenType.DSTAR,
            "//": tokens.TokenType.DIV,
            "MATCH_CONDITION": tokens.TokenType.MATCH_CONDITION,
        }

    class Parser(parser.Parser):
        """Knows few functions, so that users can give theirs any name."""

        FUNCTIONS: ClassVar = {name: parser.Parser.FUNCTIONS[name] for name in ("ABS", "COUNT")}
        FUNCTION_PARSERS: ClassVar = {
            name: parser.Parser.FUNCTION_PARSERS[name]
            for name in ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
        }
        EXPONENT: ClassVar = {tokens.TokenType.CARET: exp.Pow, tokens.TokenType.DSTAR: exp.Pow}
        BITWISE: ClassVar = {
            token: node for token, node in parser.Parser.BITWISE.items() if token != tokens.TokenType.CARET
        }
        FACTOR: ClassVar = {**parser.Parser.FACTOR, tokens.TokenType.DIV: exp.IntDiv}
        TABLE_ALIAS_TOKENS: ClassVar = parser.Parser.TABLE_ALIAS_TOKENS - {tokens.TokenType.MATCH_CONDITION}
        NO_PAREN_FUNCTIONS: ClassVar[dict[tokens.TokenType, type[exp.Expression]]] = {}

        def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
            """Read ``(start, end) CONTAINS inner`` as ``@>``; without an interval before it, CONTAINS is any name."""
            found = super()._parse_range(this, parse_is)
            if not isinstance(found, exp.Tuple | exp.Anonymous):
                return found
            negated = self._match(tokens.TokenType.NOT)
            if not self._match_text_seq("CONTAINS"):
                if negated:
                    self._retreat(self._index - 1)
                return found
            contains = self.expression(exp.ArrayContainsAll(this=found, expression=self._parse_bitwise()))
            return self.expression(exp.Not(this=contains)) if negated else contains

        def _build_predicate(self, klass: Any, this: Any, expression: Any, *rest: Any, **options: Any) -> Any:
            """Refuse ``a = b IS NULL``: sqlglot reads ``a = (b IS NULL)``, other engines ``(a = b) IS NULL``."""
            sides = [side.this if isinstance(side, exp.Not) else side for side in (this, expression)]
            if klass in _COMPARISONS and any(isinstance(side, _CONDITIONS) for side in sides):
                self.raise_error("engines read a condition beside a comparison in different ways: put it in brackets")
            return super()._build_predicate(klass, this, expression, *rest, **options)


def parse_text(body: str, text: str, what: str) -> exp.Expression:
    """The sqlglot tree of ``body``; errors quote ``text``, the whole query."""
    try:
        trees = sqlglot.parse(body, dialect=InterlaceDialect)
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        message, token = details[0].get("description") or str(error), str(details[0].get("highlight") or "")
        missing = re.search(r"missing for <class '[\w.]*\.(\w+)'>", message)
        if missing:  # sqlglot's message names its classes
            symbol = _SYMBOLS.get(missing[1].upper())
            message = f"something is missing beside {symbol}" if symbol else f"{missing[1].upper()} is not complete"
        elif message.startswith("Invalid expression"):
            message = f"unexpected {token}" + (f": {_HINTS[token.upper()]}" if token.upper() in _HINTS else "")
            line, column = details[0].get("line"), details[0].get("col")
            meant = _misspelt(text, line, column, token)
            message += f" after {meant[0]}: write {meant[1]}" if meant is not None and ":" not in message else ""
        elif message.startswith("Error tokenizing"):
            message = "a quote is opened and never closed"
        message = message.replace("Expecting", "expected")
        line, column = details[0].get("line"), details[0].get("col")
        offset = None
        if line and column:
            starts = [0, *(match.end() for match in re.finditer("\n", text))]
            offset = min(starts[line - 1] + column - max(len(token), 1), len(text))
        elif "quote" in message:
            unclosed = re.search(r"[`'\"]", mask_quotes(text))
            offset = None if unclosed is None else unclosed.start()
        raise at_place(f"the text cannot be read: {message}", text, offset) from None
    found = [tree for tree in trees if tree is not None]
    if not found:
        raise QueryError(f"the text is empty: write {what}")
    if len(found) != 1 or isinstance(found[0], exp.Block):
        raise QueryError(f"write {what}, and one only: {text!r}")
    return found[0]


def _misspelt(text: str, line: int | None, column: int | None, token: str) -> tuple[str, str] | None:
    """The word before an unexpected token and what to write for it; None if it looks like no keyword."""
    if not line or not column:
        return None
    before = text.split("\n")[line - 1][: column - len(token)]
    word = re.search(r"(?:\bDIV|\w{4,})\s*(?:\w+\s*)?$", before.upper())
    for each in () if word is None else word[0].split():
        if each == "DIV":
            return each, "//"
        if each in _PERIODS:
            return each, _PERIODS[each]
        meant = get_close_matches(each, _WORDS, n=1, cutoff=0.7)
        if meant and each not in _WORDS:
            return each, meant[0]
    return None


def mask_quotes(text: str) -> str:
    """``text`` with quoted parts and comments blanked out, so that keywords can be searched for."""
    quoted = r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/"
    return re.sub(quoted, lambda match: " " * len(match.group()), text, flags=re.DOTALL)


def place_of(node: exp.Expression) -> int | None:
    """Where the node starts in the text, or None: the least known start of its parts."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


def error_at(text: str, node: exp.Expression, message: str) -> QueryError:
    """The error for ``message``, with a caret below the place of ``node``."""
    return at_place(message, text, place_of(node))


def qualifier_of(node: exp.Column) -> str | None:
    """The qualifier of a column: ``R`` of ``R.power``."""
    return ".".join(part.name for part in node.parts[:-1]) or None


def match_name(name: str, known: tuple[str, ...]) -> str | None:
    """The known name that matches exactly, or else the only one that matches ignoring case."""
    if name in known:
        return name
    alike = [each for each in known if each.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
