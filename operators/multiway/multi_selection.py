"""The columns of the results of a join of several streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.query.errors import JoinError, PredicateError
from operators.query.expressions import Alias, Column, Expression, columns_in
from operators.query.multi_condition import check_columns, column_of
from operators.query.select_items import ComputedItem, CountItem, Item, SelectItem
from operators.values.evaluation import evaluate, type_of
from operators.values.selection import check_names

Shown = tuple[str, Expression]
"""A column of the results: its name, and the column or value that it shows."""


@dataclass(frozen=True, eq=False)
class MultiSelection:
    """A select list over several roles."""

    roles: tuple[str, ...]
    items: tuple[SelectItem | ComputedItem, ...]

    @classmethod
    def of(cls, roles: tuple[str, ...], select: Sequence[str | Expression | Item] | None) -> MultiSelection:
        """Read a list such as ["a.id", "b.*", (a.price * 2).alias("double")]; None: all columns of all roles."""
        if select is None:
            return cls(roles, tuple(SelectItem(role, "*") for role in roles))
        if isinstance(select, str | Expression) or not isinstance(select, Sequence) or not select:
            raise JoinError(f"select must be a list of columns such as ['{roles[0]}.id'], not {select!r}")
        found = cls(roles, tuple(_item(roles, each) for each in select))
        check_names([name for item in found.items if (name := _name(item)) is not None])
        return found

    def shows(self, name: str) -> bool:
        """Whether a column of the results is given this name."""
        return name in [_name(item) for item in self.items]

    def shows_all(self, role: int) -> bool:
        """Whether the columns of a role that results need depend on its schema."""
        return any(
            isinstance(each, SelectItem) and (each.role, each.column) == (self.roles[role], "*") for each in self.items
        )

    def needed_columns(self, role: int, schema: pa.Schema) -> list[str]:
        """The columns of a role that results need, each once; also those that the schema lacks."""
        schemas = {role: schema}
        wanted = [column_of(each, self.roles) for _, shown in self.columns(schemas) for each in columns_in(shown)]
        return list(dict.fromkeys(name for owner, name in wanted if owner == role))

    def columns(self, schemas: Mapping[int, pa.Schema]) -> list[Shown]:
        """The columns of the results in order; of a role whose schema is not given, only those that are named."""
        shown: list[Shown] = []
        for item in self.items:
            if isinstance(item, ComputedItem):
                shown.append((item.name, item.expression))
                continue
            names = [item.column]
            if item.column == "*":
                schema = schemas.get(self.roles.index(item.role))
                names = [] if schema is None else [name for name in schema.names if not name.startswith("#")]
            shown += [(item.name or f"{item.role}.{name}", Column(item.role, name)) for name in names]
        return shown

    def schema(self, schemas: Mapping[int, pa.Schema]) -> pa.Schema:
        """The columns of the results, given all schemas; raises PredicateError for types that do not fit."""

        def kind(column: Column) -> pa.DataType:
            role, name = column_of(column, self.roles)
            return schemas[role].field(name).type

        fields = [pa.field(name, type_of(shown, kind)) for name, shown in self.columns(schemas)]
        check_names([field.name for field in fields])
        return pa.schema(fields)

    def rows(
        self, schemas: Mapping[int, pa.Schema], column: Callable[[Column], pa.Array], count: int
    ) -> pa.RecordBatch:
        """So many result rows; `column` gives a role's column for them. Cost: O(rows) per column."""
        shown = self.columns(schemas)
        arrays = [column(each) if isinstance(each, Column) else evaluate(each, column, count) for _, each in shown]
        return pa.record_batch(arrays, names=[name for name, _ in shown])


def _item(roles: tuple[str, ...], given: object) -> SelectItem | ComputedItem:
    if isinstance(given, CountItem):
        raise JoinError("select: the number of matches belongs to a join of two streams, kind='count'")
    if isinstance(given, SelectItem | ComputedItem):
        return given
    name = given.name if isinstance(given, Alias) else None
    given = given.operand if isinstance(given, Alias) else given
    if isinstance(given, Expression):
        try:
            check_columns(given, roles)
        except PredicateError as error:
            raise JoinError(f"select: {error}") from None
        if isinstance(given, Column):
            return SelectItem(given.stream or "", given.name, name=name)
        if not columns_in(given):
            raise JoinError(f"select: `{given!r}` names no column: write a value that depends on a row")
        return ComputedItem(given, name or repr(given))
    text = given if isinstance(given, str) else ""
    role = next((role for role in roles if text.startswith(f"{role}.")), None)
    if role is None or len(text) == len(role) + 1:
        raise JoinError(
            f"select: {given!r} must start with {' or '.join(repr(f'{role}.') for role in roles)} and name a column"
        )
    return SelectItem(role, text[len(role) + 1 :])


def _name(item: SelectItem | ComputedItem) -> str | None:
    """The name that an item gives to a column; None for several columns."""
    if isinstance(item, ComputedItem):
        return item.name
    return None if item.column == "*" else item.name or f"{item.role}.{item.column}"
