"""Queries over files: `SELECT .. FROM 'trips.parquet' AS a, 'stops.csv' AS b ..`.

The names of files in FROM are replaced by names of streams, so that what follows is a query like any other. Each name
is padded to the length of what it replaces: the place of an error in one text is its place in the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

OUTPUTS = ("results", "late")
"""Names that the outputs of a join have, so that no stream may."""


@dataclass(frozen=True)
class QueryText:
    """A query whose streams are files.

    text:    the query with names of streams in place of files.
    written: the query as the user wrote it.
    paths:   the file of each stream.
    roles:   the stream of each name that a query may use for a side.
    """

    text: str
    written: str
    paths: Mapping[str, str]
    roles: Mapping[str, str]

    def as_written(self, message: str) -> str:
        """A message that quotes a line of `text`, with the line that the user wrote."""
        for ours, theirs in zip(self.text.splitlines(), self.written.splitlines(), strict=True):
            message = message.replace(f"\n  {ours}\n", f"\n  {theirs}\n")
        return message


@dataclass(frozen=True)
class _Item:
    """One entry of FROM: where its file is written, the file, and the role, if it has one."""

    start: int
    end: int
    path: str
    alias: str | None


def read_query(written: str, inputs: Mapping[str, str]) -> QueryText:
    """Find the files of a query. `inputs` names the files of streams that FROM mentions by other names.

    The same file twice is one stream, joined with itself.
    """
    items = list(_items(written))
    files = {item: _real(inputs.get(item.path, item.path)) for item in items}
    stems = {file: _stem(file) for file in files.values()}
    distinct = len(set(stems.values())) == len(stems)
    text, paths, roles = written, {}, {}
    for item in reversed(items):
        given = inputs.get(item.path)
        stem = stems[files[item]]
        name = item.path if given is not None or not distinct or stem in OUTPUTS else stem
        length = item.end - item.start
        quoted = '"' + name.replace('"', '""') + '"'
        if len(quoted) > length:  # a bare name
            quoted = written[item.start : item.end]
            name = item.path
        text = text[: item.start] + quoted.ljust(length) + text[item.end :]
        paths[name] = given or item.path
        roles[item.alias or name] = name
    return QueryText(text, written, dict(reversed(paths.items())), dict(reversed(roles.items())))


def _items(written: str) -> Iterator[_Item]:
    from sqlglot.errors import SqlglotError
    from sqlglot.tokens import Tokenizer, TokenType

    class Names(Tokenizer):
        IDENTIFIERS = ('"', "`")

    try:
        tokens = Names().tokenize(written)
    except SqlglotError:
        return  # the parser of queries says what is wrong, and where
    names = {TokenType.STRING, TokenType.IDENTIFIER, TokenType.VAR}
    expected = False
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token.token_type in (TokenType.FROM, TokenType.JOIN):
            expected = True
        elif not (expected and token.token_type in names):
            expected = False
        else:
            last = token
            while place + 1 < len(tokens) and tokens[place].token_type is TokenType.DOT:
                last = tokens[place + 1]
                place += 2
            path = token.text if last is token else written[token.start : last.end + 1]
            if place < len(tokens) and tokens[place].token_type is TokenType.ALIAS:
                place += 1
            alias = None
            if place < len(tokens) and tokens[place].token_type in (TokenType.VAR, TokenType.IDENTIFIER):
                alias = tokens[place].text
                place += 1
            yield _Item(token.start, last.end + 1, path, alias)
            expected = place < len(tokens) and tokens[place].token_type is TokenType.COMMA
            place += expected


def _real(path: str) -> str:
    return path if path == "-" or "*" in path else os.path.realpath(os.path.expanduser(path))


def _stem(path: str) -> str:
    """The name of a file without its endings: that of the stream, and of the side if the query gives none."""
    name = PurePath(path).name
    return name.split(".")[0] or name
