"""Which columns the results show, and under which names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.errors import JoinError
from operators.sql import SelectItem


@dataclass(frozen=True)
class Selected:
    """One column of a result: the place of its item in the select list, its name in the stream and in the result."""

    place: int
    column: str
    name: str


@dataclass(frozen=True)
class Selection:
    """The select list of a join between two roles; None stands for all columns of both."""

    roles: tuple[str, str]
    items: tuple[SelectItem, ...] | None = None

    @classmethod
    def of(cls, roles: tuple[str, str], select: Sequence[str] | None) -> Selection:
        """Read a list such as ["R.id", "S.*"]."""
        if select is None:
            return cls(roles)
        if isinstance(select, str) or not select:
            raise JoinError(f"select must be a list of columns such as ['{roles[0]}.id', '{roles[1]}.id']")
        items = []
        for text in select:
            role = next((role for role in roles if isinstance(text, str) and text.startswith(f"{role}.")), None)
            if role is None or len(text) == len(role) + 1:
                raise JoinError(f"select: {text!r} must start with '{roles[0]}.' or '{roles[1]}.' and name a column")
            items.append(SelectItem(role, text[len(role) + 1 :]))
        return cls(roles, tuple(items))

    def columns(self, side: int, schema: pa.Schema) -> list[Selected]:
        """The result columns that come from one side, given its schema."""
        role = self.roles[side]
        items = self.items if self.items is not None else tuple(SelectItem(each, "*") for each in self.roles)
        chosen = []
        for place, item in enumerate(items):
            if item.role != role:
                continue
            names = [name for name in schema.names if not name.startswith("#")] if item.column == "*" else [item.column]
            for name in names:
                column = name
                if name not in schema.names and item.alternative in schema.names:
                    column = item.alternative or name
                chosen.append(Selected(place, column, item.name or f"{role}.{name}"))
        return chosen

    def missing(self, side: int, schema: pa.Schema) -> list[str]:
        """The selected columns of a side that its schema lacks."""
        return [each.column for each in self.columns(side, schema) if each.column not in schema.names]

    def result_schema(self, schemas: tuple[pa.Schema | None, pa.Schema | None]) -> pa.Schema:
        """The columns of the results, in order; those of a stream with no known schema have type null."""
        fields: list[tuple[int, pa.Field]] = []
        for side, schema in enumerate(schemas):
            known = schema if schema is not None else pa.schema([])
            for each in self.columns(side, known):
                kind = known.field(each.column).type if each.column in known.names else pa.null()
                fields.append((each.place, pa.field(each.name, kind)))
        ordered = [field for _, field in sorted(fields, key=lambda entry: entry[0])]
        names = [field.name for field in ordered]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise JoinError(f"select: '{twice[0]}' would appear twice in the results: name each column once")
        return pa.schema(ordered)
