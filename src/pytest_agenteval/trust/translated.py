"""Pairs of statements of other dialects: translated to DuckDB where both agree there on the real data."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pytest_agenteval.compare import ComparisonOptions, compare
from pytest_agenteval.databases.duckdb_engine import LOCKED
from pytest_agenteval.databases.select_only import quiet_parser
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.table import Column, Table
from pytest_agenteval.trust.constraints import Constraints
from pytest_agenteval.trust.engines import literal
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.known import KnownData
from pytest_agenteval.trust.mining import quoted, table_sql
from pytest_agenteval.trust.schema import TableInfo

MOST_COPIED = 20_000
"""Rows of the tables that two statements read, up to which they are copied to compare translations."""


def translated_pair(
    reference: str, other: str, known: KnownData, options: ComparisonOptions
) -> tuple[str, str, KnownData]:
    """Return both statements in DuckDB's SQL, and a copy of the tables they read.

    Raises ``NotCheckedError`` where a translation does not run there, or gives another table than the
    original: what it would show on made-up rows could be the translation's doing.
    """
    queries = [known.query(sql) for sql in (reference, other)]
    tables = [known.catalog.tables[key] for key in sorted(queries[0].tables | queries[1].tables)]
    copy = DuckCopy(tables, known)
    translations = [_translated(sql, known.dialect) for sql in (reference, other)]
    for sql, translation in zip((reference, other), translations, strict=True):
        try:
            there, here = known.run(sql), copy.query(translation)
        except DatabaseError as error:
            reason = str(error).strip().splitlines()[0]
            raise NotCheckedError(f"a translation to DuckDB does not run: {reason}") from error
        if not compare(there, here, options).matched:
            raise NotCheckedError(f"translated from {known.dialect} to DuckDB, the SQL gives another table")
    return translations[0], translations[1], KnownData(copy, _stated(known, tables))


def _translated(sql: str, dialect: str) -> str:
    try:
        with quiet_parser():
            tree = sqlglot.parse_one(sql, read=dialect or None)
            for table in tree.find_all(exp.Table):
                table.set("db", None)  # the copies lie in one schema
                table.set("catalog", None)
            return str(tree.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE))
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise NotCheckedError(f"the SQL cannot be translated from {dialect} to DuckDB: {reason}") from error


def _stated(known: KnownData, tables: list[TableInfo]) -> str:
    """Return the keys that the database declares, as rules for the copy."""
    keys = frozenset(table.key for table in tables)
    declared = known.catalog.declared.of_tables(keys)
    text = "; ".join(Constraints(declared.not_null, declared.keys, declared.references).lines())
    for table in tables:
        text = text.replace(table.key, table.name.lower())
    return text


class DuckCopy:
    """A few tables of a server in DuckDB, in memory. Raises ``NotCheckedError`` for more than 20,000 rows."""

    dialect = "duckdb"

    def __init__(self, tables: list[TableInfo], known: KnownData) -> None:
        import duckdb

        self._failure: type[Exception] = duckdb.Error
        self._connection = duckdb.connect(":memory:", config={"threads": 1, **LOCKED})
        if len({table.name.lower() for table in tables}) < len(tables):
            raise NotCheckedError("the SQL reads tables of one name in two schemas")
        left = MOST_COPIED
        for table in tables:
            left -= self._copy(table, known, left)

    def _copy(self, table: TableInfo, known: KnownData, most: int) -> int:
        columns = ", ".join(quoted(column.name, known.dialect) for column in table.columns)
        name = table_sql(table, known.dialect)
        rows = list(known.run(f"SELECT {columns} FROM {name} LIMIT {most + 1}").rows())
        if len(rows) > most:
            raise NotCheckedError(
                f"to compare its translation to DuckDB more than {MOST_COPIED:,} rows would have to be copied"
            )
        shown = f'"{table.name}"'
        try:
            kinds = ", ".join(f'"{c.name}" {_duck_type(c.type, known.dialect)}' for c in table.columns)
            self._connection.execute(f"CREATE TABLE {shown} ({kinds})")
            for start in range(0, len(rows), 500):
                values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows[start : start + 500])
                self._connection.execute(f"INSERT INTO {shown} VALUES {values}")
        except self._failure as error:
            raise NotCheckedError(f"{table.name} cannot be copied to DuckDB: {error}") from error
        return len(rows)

    def query(self, sql: str, timeout: float | None = None) -> Table:
        """Run one SELECT. Raises ``DatabaseError``."""
        try:
            self._connection.execute(sql)
        except self._failure as error:
            raise DatabaseError(str(error)) from error
        columns = tuple(Column(entry[0], str(entry[1])) for entry in self._connection.description)
        return Table.from_rows(
            [c.name for c in columns], self._connection.fetchall(), [c.type for c in columns]
        )


def _duck_type(kind: str, dialect: str) -> str:
    """Return a column type as DuckDB calls it; text for what it has not."""
    try:
        with quiet_parser():
            return str(exp.DataType.build(kind, dialect=dialect or None).sql(dialect="duckdb"))
    except (SqlglotError, ValueError):
        return "VARCHAR"
