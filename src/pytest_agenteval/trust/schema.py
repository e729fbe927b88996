"""``Catalog``: the tables of a database, their columns and what is declared of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from pytest_agenteval.table import Table
from pytest_agenteval.trust.constraints import Constraints, ForeignKey

Cell: TypeAlias = tuple[str, str]
"""A column of a table: (``schema.table``, ``column``), both in lower case."""

Rows: TypeAlias = dict[str, list[list[Any]]]
"""Made-up data: rows by table (``schema.table`` in lower case), values in the order of its columns."""


class Source(Protocol):
    """What is asked of a database: its SQL dialect, and one SELECT at a time."""

    @property
    def dialect(self) -> str:
        """Return sqlglot's name of the SQL it speaks."""

    def query(self, sql: str, timeout: float | None = None) -> Table:
        """Run one SELECT, within ``timeout`` seconds. Raises ``DatabaseError``."""


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column: its name as declared, its type as the database spells it, whether NULL is refused."""

    name: str
    type: str
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table: its schema ('' where there is none), its name as declared, its columns in order."""

    schema: str
    name: str
    columns: tuple[ColumnInfo, ...]

    @property
    def key(self) -> str:
        """Return ``schema.table`` in lower case."""
        return f"{self.schema}.{self.name}".lower() if self.schema else self.name.lower()

    @property
    def names(self) -> list[str]:
        """Return the column names in lower case."""
        return [column.name.lower() for column in self.columns]

    def index(self, column: str) -> int:
        """Return the position of a column. Raises ``ValueError`` for an unknown one."""
        return self.names.index(column)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The tables of one database by key, its views (their SELECT by key), and what is declared."""

    dialect: str
    tables: Mapping[str, TableInfo]
    views: Mapping[str, str] = field(default_factory=dict)
    declared: Constraints = field(default_factory=Constraints)

    def find(self, name: str) -> TableInfo | None:
        """Return the table that ``orders``, ``main.orders`` or ``shop.main.orders`` means."""
        key = _listed(name, self.tables)
        return None if key is None else self.tables[key]

    def view(self, name: str) -> str | None:
        """Return the SELECT of the view of that name."""
        key = _listed(name, self.views)
        return None if key is None else self.views[key]

    def column(self, cell: Cell) -> ColumnInfo:
        """Return the column of a table. Raises ``KeyError`` or ``ValueError`` for an unknown one."""
        table = self.tables[cell[0]]
        return table.columns[table.index(cell[1])]


def _listed(name: str, keys: Iterable[str]) -> str | None:
    wanted = [part.strip('"`[] ').lower() for part in name.split(".")]
    for key in keys:
        parts = key.split(".")
        short = min(len(parts), len(wanted))
        if parts[-short:] == wanted[-short:]:
            return key
    return None


def read_catalog(source: Source) -> Catalog:
    """Return the catalog of a database. Raises ``DatabaseError`` where it cannot be read."""
    readers: dict[str, Callable[[Source], Catalog]] = {"duckdb": _read_duckdb, "sqlite": _read_sqlite}
    return readers.get(source.dialect, _read_information_schema)(source)


_DUCKDB_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns()
WHERE NOT internal AND database_name = current_database() ORDER BY schema_name, table_name, column_index
"""

_DUCKDB_VIEWS = """
SELECT schema_name, view_name, sql FROM duckdb_views()
WHERE NOT internal AND database_name = current_database()
"""

_DUCKDB_CONSTRAINTS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table,
    referenced_column_names
FROM duckdb_constraints() WHERE database_name = current_database()
"""


def _read_duckdb(source: Source) -> Catalog:
    views = {f"{schema}.{name}".lower(): str(sql) for schema, name, sql in source.query(_DUCKDB_VIEWS).rows()}
    tables = _tables(source.query(_DUCKDB_COLUMNS).rows())
    keys, references = set(), set()
    for schema, table, kind, columns, parent, parents in source.query(_DUCKDB_CONSTRAINTS).rows():
        name = f"{schema}.{table}".lower()
        lowered = tuple(str(column).lower() for column in columns or ())
        if kind in ("PRIMARY KEY", "UNIQUE"):
            keys.add((name, lowered))
        elif kind == "FOREIGN KEY":
            other = tuple(str(column).lower() for column in parents or ())
            references.add(ForeignKey(name, lowered, f"{schema}.{parent}".lower(), other))
    return _catalog("duckdb", tables, views, keys, references)


def _tables(rows: Iterable[tuple[Any, ...]]) -> dict[str, TableInfo]:
    """Return tables of (schema, table, column, type, nullable) rows, in order."""
    columns: dict[tuple[str, str], list[ColumnInfo]] = {}
    for schema, table, name, kind, nullable in rows:
        refused = nullable in (False, "NO", 0)
        columns.setdefault((str(schema or ""), str(table)), []).append(
            ColumnInfo(str(name), str(kind), refused)
        )
    found = (TableInfo(schema, name, tuple(listed)) for (schema, name), listed in columns.items())
    return {table.key: table for table in found}


def _catalog(
    dialect: str,
    tables: dict[str, TableInfo],
    views: dict[str, str],
    keys: set[tuple[str, tuple[str, ...]]],
    references: set[ForeignKey],
) -> Catalog:
    kept = {key: table for key, table in tables.items() if key not in views}
    not_null = {
        (key, column.name.lower())
        for key, table in kept.items()
        for column in table.columns
        if column.not_null
    }
    declared = Constraints(frozenset(not_null), frozenset(keys), frozenset(references))
    return Catalog(dialect, kept, views, declared)


_SQLITE_COLUMNS = """
SELECT '' AS s, m.name AS t, p.name AS c, p.type AS k, CASE WHEN p."notnull" = 1 THEN 0 ELSE 1 END AS n,
    p.pk AS pk
FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, p.cid
"""

_SQLITE_UNIQUE = """
SELECT m.name AS t, l.name AS i, i.name AS c
FROM sqlite_master AS m JOIN pragma_index_list(m.name) AS l JOIN pragma_index_info(l.name) AS i
WHERE m.type = 'table' AND l."unique" = 1 AND l.partial = 0 ORDER BY m.name, l.name, i.seqno
"""

_SQLITE_REFERENCES = """
SELECT m.name AS t, f.id AS i, f."table" AS parent, f."from" AS c, f."to" AS p
FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS f
WHERE m.type = 'table' ORDER BY m.name, f.id, f.seq
"""


def _read_sqlite(source: Source) -> Catalog:
    rows = list(source.query(_SQLITE_COLUMNS).rows())
    views = {
        str(name).lower(): str(sql)
        for name, sql in source.query("SELECT name, sql FROM sqlite_master WHERE type = 'view'").rows()
    }
    primary: dict[str, list[tuple[int, str]]] = {}
    for _, table, column, _, _, place in rows:
        if place:
            primary.setdefault(str(table).lower(), []).append((int(place), str(column).lower()))
    keys = {(table, tuple(column for _, column in sorted(found))) for table, found in primary.items()}
    unique: dict[tuple[str, str], list[str]] = {}
    for table, index, column in source.query(_SQLITE_UNIQUE).rows():
        unique.setdefault((str(table).lower(), str(index)), []).append(str(column or "").lower())
    keys |= {(table, tuple(columns)) for (table, _), columns in unique.items() if all(columns)}
    linked: dict[tuple[str, int, str], list[tuple[str, str]]] = {}
    for table, number, parent, column, target in source.query(_SQLITE_REFERENCES).rows():
        other = str(parent).lower()
        aimed = str(target).lower() if target else next((c for _, c in sorted(primary.get(other, []))), "")
        linked.setdefault((str(table).lower(), int(number), other), []).append((str(column).lower(), aimed))
    references = {
        ForeignKey(table, tuple(a for a, _ in pairs), parent, tuple(b for _, b in pairs))
        for (table, _, parent), pairs in linked.items()
        if all(b for _, b in pairs)
    }
    return _catalog("sqlite", _tables(row[:5] for row in rows), views, keys, references)


_COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, c.data_type, c.is_nullable
FROM information_schema.columns AS c
JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE t.table_type = 'BASE TABLE'
AND c.table_schema NOT IN ('information_schema', 'pg_catalog', 'mysql', 'performance_schema', 'sys')
ORDER BY c.table_schema, c.table_name, c.ordinal_position
"""

_KEYS = """
SELECT k.table_schema, k.table_name, k.constraint_name, t.constraint_type, k.column_name
FROM information_schema.key_column_usage AS k JOIN information_schema.table_constraints AS t
ON t.constraint_name = k.constraint_name AND t.table_schema = k.table_schema AND t.table_name = k.table_name
WHERE t.constraint_type IN ('PRIMARY KEY', 'UNIQUE')
ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position
"""


def _read_information_schema(source: Source) -> Catalog:
    """Return the catalog of a server; its foreign keys are found by mining."""
    tables = _tables(source.query(_COLUMNS).rows())
    listed: dict[tuple[str, str], list[str]] = {}
    for schema, table, name, _, column in source.query(_KEYS).rows():
        listed.setdefault((f"{schema}.{table}".lower(), str(name)), []).append(str(column).lower())
    keys = {(table, tuple(columns)) for (table, _), columns in listed.items()}
    return _catalog(source.dialect, tables, {}, keys, set())
