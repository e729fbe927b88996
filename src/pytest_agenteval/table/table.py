"""``Table``: named, typed columns of values; the only thing databases, extraction and comparison pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pytest_agenteval.table.arrow import (
    arrow_values,
    column_values,
    is_unnamed_index,
    lost_in_arrow,
    sql_type,
)
from pytest_agenteval.table.pandas import pandas_columns


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and its SQL type as DuckDB spells it (``None``: not known)."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of ``row_count`` rows x ``len(columns)`` columns, stored column by column.

    ``values[i]`` is the data of column i: a list of Python values, a NumPy array or an Arrow
    (chunked) array. Names may repeat. Nothing is inferred from the values.
    """

    columns: tuple[Column, ...]
    values: tuple[Any, ...]
    row_count: int

    @property
    def names(self) -> list[str]:
        """Column names, in order, duplicates kept."""
        return [column.name for column in self.columns]

    @property
    def types(self) -> list[str | None]:
        """SQL types, in column order."""
        return [column.type for column in self.columns]

    def column(self, index: int) -> list[Any]:
        """Return column ``index`` as a list of ``row_count`` Python values."""
        data = self.values[index]
        if isinstance(data, list):
            return data
        if hasattr(data, "to_pylist"):
            return arrow_values(data)
        return list(data.tolist()) if hasattr(data, "tolist") else list(data)

    def head(self, count: int) -> Table:
        """Return the first ``count`` rows."""
        if count >= self.row_count:
            return self
        return Table(self.columns, tuple(data[:count] for data in self.values), count)

    def take(self, rows: Sequence[int]) -> Table:
        """Return the given rows, in that order; what is not an array becomes a list of Python values."""
        values: list[Any] = []
        for data in self.values:
            if hasattr(data, "take") and not isinstance(data, list):
                values.append(data.take(rows))
            else:
                values.append([data[row] for row in rows])
        return Table(self.columns, tuple(values), len(rows))

    def rows(self, limit: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Return the rows as tuples, at most ``limit`` of them; made at the edges only."""
        table = self if limit is None else self.head(limit)
        if not table.columns:
            return islice(iter(() for _ in range(table.row_count)), limit)
        return zip(*(table.column(i) for i in range(len(table.columns))), strict=True)

    def records(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the rows as dicts, at most ``limit``; of a repeated name the last value wins."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self.rows(limit)]

    @classmethod
    def from_rows(
        cls,
        names: Sequence[str],
        rows: Iterable[Sequence[Any]],
        types: Sequence[str | None] | None = None,
    ) -> Table:
        """Return a table of ``rows``, each as long as ``names`` (else ``ValueError``)."""
        columns = tuple(
            Column(str(name), kind) for name, kind in zip(names, types or [None] * len(names), strict=True)
        )
        kept = list(rows)
        for number, row in enumerate(kept):
            if len(row) != len(columns):
                raise ValueError(f"row {number} has {len(row)} values, expected {len(columns)}")
        values = tuple([row[i] for row in kept] for i in range(len(columns)))
        return cls(columns, values, len(kept))

    @classmethod
    def from_records(
        cls, records: Iterable[Mapping[str, Any]], types: Mapping[str, str] | None = None
    ) -> Table:
        """Return a table of dicts: columns in first-seen order, a key a row lacks is NULL there."""
        kept = list(records)
        names = _first_seen(kept)
        known = types or {}
        columns = tuple(Column(str(name), known.get(name)) for name in names)
        values = tuple([record.get(name) for record in kept] for name in names)
        return cls(columns, values, len(kept))

    @classmethod
    def from_arrow(cls, table: Any) -> Table:
        """Return a table over a ``pyarrow.Table``; arrays of basic types are kept as they are.

        Encodings are undone and extension types give what they mean (:func:`standard_array`). The index
        without a name that pandas adds is not a column.
        """
        fields = [
            (field, data)
            for field, data in zip(table.schema, table.columns, strict=True)
            if not is_unnamed_index(field.name)
        ]
        columns = tuple(Column(field.name, sql_type(field.type)) for field, _ in fields)
        return cls(columns, tuple(column_values(field, data) for field, data in fields), table.num_rows)

    @classmethod
    def from_pandas(cls, frame: Any) -> Table:
        """Return a table of a ``pandas.DataFrame``; NaN and NA are NULL.

        Levels of the index that have a name are columns, before the others; an index without a name is
        left out. Columns that Arrow cannot hold (mixed objects, lists, periods) stay lists of the
        frame's own values.
        """
        columns, values = [], []
        for name, data, kind in pandas_columns(frame):
            columns.append(Column(name, kind))
            values.append(data)
        return cls(tuple(columns), tuple(values), len(frame))

    @classmethod
    def from_duckdb(cls, relation: Any) -> Table:
        """Return a table of a DuckDB relation, with DuckDB's own type names.

        Fetched as Arrow; by rows where Arrow would lose what a type holds (the offset of a TIMETZ).
        """
        columns = tuple(
            Column(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)
        )
        if any(lost_in_arrow(str(column.type)) for column in columns):
            rows = relation.fetchall()
            return cls(columns, tuple([row[i] for row in rows] for i in range(len(columns))), len(rows))
        table = relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.arrow()
        pairs = zip(table.schema, table.columns, strict=True)
        return cls(columns, tuple(column_values(field, data) for field, data in pairs), table.num_rows)

    @classmethod
    def from_cursor(cls, cursor: Any, types: Sequence[str | None] | None = None) -> Table:
        """Return a table of all rows a DB-API cursor still holds, names from its ``description``."""
        names = [str(entry[0]) for entry in cursor.description]
        return cls.from_rows(names, [tuple(row) for row in cursor.fetchall()], types)


def _first_seen(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return all keys in the order in which they are first met; rows mostly repeat the keys of the first."""
    names: dict[str, None] = {}
    for record in records:
        if record.keys() != names.keys():
            names.update(dict.fromkeys(record))
    return list(names)
