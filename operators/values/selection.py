"""The columns of the results: columns of either side, computed values, the number of matches, and aggregates.

Plain columns are copied from the payload; only computed items cost arithmetic per result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.protocol.sides import LEFT
from operators.query.errors import JoinError
from operators.query.expressions import Alias, Column, Expression, columns_in
from operators.query.kinds import Kind
from operators.query.select_items import AggregateItem, ComputedItem, CountItem, Item, SelectItem
from operators.values.aggregate_types import aggregate_type
from operators.values.evaluation import type_of
from topology import is_of_spark


@dataclass(frozen=True)
class Selected:
    """One column of a result: the place of its item in the select list, its name in the stream and in the result."""

    place: int
    column: str
    name: str


@dataclass(frozen=True, eq=False)
class Computed:
    """One computed column of a result: its place in the select list, its value, its name in the result."""

    place: int
    expression: Expression
    name: str


@dataclass(frozen=True)
class Counted:
    """The result column with the number of matches."""

    place: int
    name: str


@dataclass(frozen=True, eq=False)
class Aggregated:
    """The result column of an aggregate."""

    place: int
    item: AggregateItem

    @property
    def name(self) -> str:
        """Its name in the result."""
        return self.item.name


@dataclass(frozen=True)
class Selection:
    """The select list of a join between two roles; None means all columns of both.

    For kinds without right rows, None means the columns of the left, and with aggregates those of the side whose rows
    come out. A count shows the number of matches last, unless the list gives it a place.

    side: the side whose rows come out with aggregates over their matches on the other side.
    """

    roles: tuple[str, str]
    items: tuple[Item, ...] | None = None
    kind: Kind = Kind.INNER
    side: int = LEFT

    def __post_init__(self) -> None:
        items = self.items
        if items is None or all(isinstance(item, AggregateItem) for item in items):
            shown = self.roles if self.kind.shows_right else self.roles[:1]
            shown = (self.roles[self.side],) if self.kind.is_aggregate else shown
            items = (*(SelectItem(role, "*") for role in shown), *(items or ()))
        if self.kind == Kind.COUNT and not any(isinstance(item, CountItem) for item in items):
            items = (*items, CountItem())
        for item in items:
            self._check(item)
        if sum(isinstance(item, CountItem) for item in items) > 1:
            raise JoinError("select: the number of matches is selected twice: select COUNT(*) once")
        check_names([_name(item) for item in items if not (isinstance(item, SelectItem) and item.column == "*")])
        object.__setattr__(self, "items", items)

    @classmethod
    def of(
        cls,
        roles: tuple[str, str],
        select: Sequence[str | Expression | Item] | None,
        kind: Kind = Kind.INNER,
        aggregates: tuple[AggregateItem, ...] = (),
        side: int = LEFT,
    ) -> Selection:
        """Read a list such as ["R.id", "S.*", (R.price * 2).alias("double")]; `aggregates` follow it."""
        if select is None:
            return cls(roles, aggregates or None, kind, side)
        if isinstance(select, str | Expression) or not isinstance(select, Sequence) or not select:
            raise JoinError(
                f"select must be a list of columns such as ['{roles[0]}.id', '{roles[1]}.id'], not {select!r}"
            )
        return cls(roles, (*(select_item(roles, each) for each in select), *aggregates), kind, side)

    def columns(self, side: int, schema: pa.Schema) -> list[Selected]:
        """The result columns that are columns of one side, given its schema."""
        role = self.roles[side]
        chosen = []
        for place, item in enumerate(self.items or ()):
            if not isinstance(item, SelectItem) or item.role != role:
                continue
            names = [name for name in schema.names if not name.startswith("#")] if item.column == "*" else [item.column]
            for name in names:
                column = name
                if name not in schema.names and item.alternative in schema.names:
                    column = item.alternative or name
                chosen.append(Selected(place, column, item.name or f"{role}.{name}"))
        return chosen

    @property
    def computed(self) -> list[Computed]:
        """The computed result columns; `needed_columns` names the columns they use."""
        items = enumerate(self.items or ())
        return [Computed(place, item.expression, item.name) for place, item in items if isinstance(item, ComputedItem)]

    @property
    def counted(self) -> Counted | None:
        """The result column with the number of matches, if any."""
        items = enumerate(self.items or ())
        return next((Counted(place, item.name) for place, item in items if isinstance(item, CountItem)), None)

    @property
    def aggregated(self) -> list[Aggregated]:
        """The result columns that are aggregates, in the order of the list."""
        items = enumerate(self.items or ())
        return [Aggregated(place, item) for place, item in items if isinstance(item, AggregateItem)]

    @property
    def only_counts(self) -> bool:
        """Whether of the matches no more than their number is needed."""
        return self.kind is Kind.COUNT or (
            self.kind is Kind.AGGREGATE and all(each.item.argument is None for each in self.aggregated)
        )

    def needed_columns(self, side: int, schema: pa.Schema) -> list[str]:
        """The columns of a side that results need, each once: first those shown, then those used in computed values."""
        shown = [each.column for each in self.columns(side, schema)]
        expressions = [each.expression for each in self.computed]
        expressions += [each.item.argument for each in self.aggregated if each.item.argument is not None]
        within = [column for each in expressions for column in columns_in(each)]
        return list(dict.fromkeys([*shown, *(each.name for each in within if each.stream == self.roles[side])]))

    def named_columns(self, side: int) -> int | None:
        """The number of columns of a side that results need; None if it depends on the schema."""
        role = self.roles[side]
        if any(isinstance(item, SelectItem) and item.role == role and item.column == "*" for item in self.items or ()):
            return None
        return len(self.needed_columns(side, pa.schema([])))

    def alternatives(self, side: int) -> list[str]:
        """Names that columns of a side may have instead of those selected; see `SelectItem`."""
        items = [item for item in self.items or () if isinstance(item, SelectItem) and item.role == self.roles[side]]
        return [item.alternative for item in items if item.alternative is not None]

    def shows(self, name: str) -> bool:
        """Whether a column of the results is given this name."""
        return name in [_name(item) for item in self.items or ()]

    def missing(self, side: int, schema: pa.Schema) -> list[str]:
        """The columns of a side that the results need and its schema lacks."""
        return [name for name in self.needed_columns(side, schema) if name not in schema.names]

    def result_schema(self, schemas: tuple[pa.Schema | None, pa.Schema | None]) -> pa.Schema:
        """The columns of the results, in order; columns of a stream without a known schema have type null.

        Raises PredicateError if an expression does not fit the types of its columns.
        """
        fields: list[tuple[int, pa.Field]] = []
        for side, schema in enumerate(schemas):
            known = schema if schema is not None else pa.schema([])
            for each in self.columns(side, known):
                kind = known.field(each.column).type if each.column in known.names else pa.null()
                fields.append((each.place, pa.field(each.name, kind)))
        for one in self.computed:
            sides = {self.roles.index(column.stream or "") for column in columns_in(one.expression)}
            unknown = any(schemas[side] is None for side in sides)
            kind = pa.null() if unknown else self._type(one.expression, schemas)
            fields.append((one.place, pa.field(one.name, kind)))
        if self.counted is not None:
            fields.append((self.counted.place, pa.field(self.counted.name, pa.int64())))
        for found in self.aggregated:
            fields.append((found.place, pa.field(found.name, self._aggregate_type(found.item, schemas))))
        ordered = [field for _, field in sorted(fields, key=lambda entry: entry[0])]
        check_names([field.name for field in ordered])
        return pa.schema(ordered)

    def _aggregate_type(
        self, item: AggregateItem, schemas: tuple[pa.Schema | None, pa.Schema | None]
    ) -> pa.DataType:
        if item.argument is None:
            return pa.int64()
        if schemas[1 - self.side] is None:
            return aggregate_type(item, pa.null())
        return aggregate_type(item, self._type(item.argument, schemas))

    def _type(self, expression: Expression, schemas: tuple[pa.Schema | None, pa.Schema | None]) -> pa.DataType:
        def column_type(column: Column) -> pa.DataType:
            schema = schemas[self.roles.index(column.stream or "")]
            assert schema is not None, "asked only where it is known"
            return schema.field(column.name).type

        return type_of(expression, column_type)

    def _check(self, item: Item) -> None:
        left, right = self.roles
        if isinstance(item, CountItem):
            if self.kind != Kind.COUNT:
                raise JoinError(f"select: the number of matches belongs to kind='count', not to kind='{self.kind}'")
            return
        if isinstance(item, AggregateItem):
            return
        if isinstance(item, ComputedItem):
            used = [column.stream for column in columns_in(item.expression)]
            shown = f"`{item.expression!r}`"
            if not used:
                raise JoinError(f"select: {shown} names no column: write a value that depends on a row")
            unknown = next((role for role in used if role not in self.roles), left)
            if unknown not in self.roles:
                raise JoinError(
                    f"select: {shown} names a column of {unknown!r}, which is not a side of this join: "
                    f"its sides are {left!r} and {right!r}"
                )
        else:
            used, shown = [item.role], f"'{item.role}.{item.column}'"
        own, other = self.roles[self.side], self.roles[1 - self.side]
        if self.kind.is_aggregate and other in used:
            raise JoinError(
                f"select: {shown} belongs to '{other}', and each result is a row of '{own}': select columns of "
                f"'{own}', or aggregate it, as in max('{other}.{item.column if isinstance(item, SelectItem) else 'x'}')"
            )
        if not self.kind.shows_right and right in used:
            raise JoinError(
                f"select: {shown} belongs to '{right}', whose rows kind='{self.kind}' does not return: "
                f"select columns of '{left}'" + (", or ask for kind='inner'" if self.kind == Kind.SEMI else "")
            )


def check_names(names: list[str]) -> None:
    """Raise JoinError if two result columns have one name."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise JoinError(
            f"select: '{twice}' would appear twice in the results: select it once, or give it another name "
            "(AS in SQL, .alias(..) in Python)"
        )


def _name(item: Item) -> str:
    return item.name or f"{item.role}.{item.column}" if isinstance(item, SelectItem) else item.name


def select_item(roles: tuple[str, str], given: object) -> Item:
    """One item of a select list, as users write it."""
    if isinstance(given, SelectItem | ComputedItem | CountItem | AggregateItem):
        return given
    left, right = roles
    name = given.name if isinstance(given, Alias) else None
    given = given.operand if isinstance(given, Alias) else given
    if isinstance(given, Column):
        if given.stream not in roles:
            raise JoinError(
                f"select: `{given!r}` is not a column of this join: write {left}.{given.name} or {right}.{given.name}"
            )
        return SelectItem(given.stream, given.name, name=name)
    if isinstance(given, Expression):
        return ComputedItem(given, name or repr(given))
    if is_of_spark(given):
        raise JoinError(
            f"select: a Column of Spark, which only Spark can read: write '{left}.id', or a column of this join, "
            f"il.stream('{left}').id.alias('id')"
        )
    text = given if isinstance(given, str) else ""
    role = next((role for role in roles if text.startswith(f"{role}.")), None)
    if role is None or len(text) == len(role) + 1:
        raise JoinError(
            f"select: {given!r} must start with '{left}.' or '{right}.' and name a column; "
            f"a computed value is written with columns, such as (stream('{left}').x * 2).alias('double')"
        )
    column, named, alias = re.split(r"(\s+AS\s+|$)", text[len(role) + 1 :], maxsplit=1, flags=re.IGNORECASE)
    if named:
        raise JoinError(f"select: {given!r}: write stream('{role}')['{column}'].alias('{alias}') for another name")
    return SelectItem(role, column)
