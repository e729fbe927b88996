"""Where made-up rows are tried: DuckDB or SQLite in memory, locked, without any of the user data."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

from pytest_agenteval.databases.duckdb_engine import LOCKED
from pytest_agenteval.errors import AgentEvalError
from pytest_agenteval.table import Column, Table
from pytest_agenteval.trust.schema import Rows, TableInfo

MOST_RESULT_ROWS = 5_000
"""Result rows of a trial; a statement that gives more on a handful of rows is not looked at."""


class TrialError(AgentEvalError):
    """A statement could not be run on made-up rows; the trial says nothing."""


class TrialEngine(Protocol):
    """A database in memory with the tables of a catalog, empty until ``load``."""

    def load(self, rows: Rows) -> None:
        """Replace all rows. Raises ``TrialError``."""

    def run(self, sql: str) -> Table:
        """Run one SELECT. Raises ``TrialError``."""

    def interrupt(self) -> None:
        """End what is running, from any thread."""

    def close(self) -> None:
        """Give the memory back."""


def open_engine(dialect: str, tables: Sequence[TableInfo], views: Sequence[str] = ()) -> TrialEngine:
    """Return an engine with empty copies of ``tables``, and the views that ``CREATE VIEW`` texts define.

    Raises ``TrialError`` where one of them cannot be made.
    """
    return SqliteTrials(tables, views) if dialect == "sqlite" else DuckTrials(tables, views)


def _create_views(views: Sequence[str], create: Callable[[str], object], failure: type[Exception]) -> None:
    """Create views in an order in which each finds those it reads."""
    waiting = list(views)
    while waiting:
        left = []
        for view in waiting:
            try:
                create(view)
            except failure as error:
                left.append((view, error))
        if len(left) == len(waiting):
            raise TrialError(f"a view cannot be made in memory: {left[0][1]}")
        waiting = [view for view, _ in left]


class DuckTrials:
    """DuckDB in memory: one thread, no files, no network, no extensions."""

    def __init__(self, tables: Sequence[TableInfo], views: Sequence[str] = ()) -> None:
        import duckdb

        self._failure: type[Exception] = duckdb.Error
        config = {"threads": 1, "memory_limit": "512MB", **LOCKED}
        self._connection = duckdb.connect(":memory:", config=config)
        self._tables = {table.key: table for table in tables}
        for table in tables:
            self._create(table)
        _create_views(views, self._connection.execute, self._failure)

    def _create(self, table: TableInfo) -> None:
        if table.schema:
            self._connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{table.schema}"')
        columns = ", ".join(f'"{c.name}" {c.type}' for c in table.columns)
        try:
            self._connection.execute(f"CREATE TABLE {_quoted(table)} ({columns})")
        except self._failure as error:
            raise TrialError(f"{table.name} cannot be made in memory: {error}") from error

    def load(self, rows: Rows) -> None:
        """Replace all rows. Raises ``TrialError``."""
        try:
            for key, table in self._tables.items():
                self._connection.execute(f"DELETE FROM {_quoted(table)}")
                if rows.get(key):
                    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows[key])
                    self._connection.execute(f"INSERT INTO {_quoted(table)} VALUES {values}")
        except self._failure as error:
            raise TrialError(str(error)) from error

    def run(self, sql: str) -> Table:
        """Run one SELECT. Raises ``TrialError``."""
        try:
            self._connection.execute(sql)
            columns = tuple(Column(entry[0], str(entry[1])) for entry in self._connection.description)
            rows = self._connection.fetchmany(MOST_RESULT_ROWS + 1)
        except (self._failure, ValueError, OverflowError) as error:
            raise TrialError(str(error)) from error
        return _table(columns, rows)

    def interrupt(self) -> None:
        """End what is running, from any thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()


class SqliteTrials:
    """SQLite in memory, in Python's own ``sqlite3``."""

    def __init__(self, tables: Sequence[TableInfo], views: Sequence[str] = ()) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._tables = {table.key: table for table in tables}
        for table in tables:
            columns = ", ".join(f'"{c.name}" {c.type}' for c in table.columns)
            self._connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
        _create_views(views, self._connection.execute, sqlite3.Error)
        self._connection.set_authorizer(_only_reading_and_rows)

    def load(self, rows: Rows) -> None:
        """Replace all rows. Raises ``TrialError``."""
        try:
            for key, table in self._tables.items():
                self._connection.execute(f'DELETE FROM "{table.name}"')
                marks = ", ".join("?" * len(table.columns))
                found = [[_for_sqlite(value) for value in row] for row in rows.get(key, ())]
                self._connection.executemany(f'INSERT INTO "{table.name}" VALUES ({marks})', found)
        except sqlite3.Error as error:
            raise TrialError(str(error)) from error

    def run(self, sql: str) -> Table:
        """Run one SELECT. Raises ``TrialError``."""
        try:
            cursor = self._connection.execute(sql)
            rows = cursor.fetchmany(MOST_RESULT_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise TrialError(str(error)) from error
        return _table(tuple(Column(entry[0]) for entry in cursor.description), rows)

    def interrupt(self) -> None:
        """End what is running, from any thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()


_SQLITE_ALLOWED = frozenset(
    (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_RECURSIVE,
    )
)


def _only_reading_and_rows(action: int, one: Any, *_: Any) -> int:
    """Let through what ``load`` and ``run`` need: no ATTACH, no PRAGMA, no DDL, no file."""
    if action == sqlite3.SQLITE_FUNCTION and str(_[0]).lower() == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _SQLITE_ALLOWED else sqlite3.SQLITE_DENY


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value


def _table(columns: tuple[Column, ...], rows: list[Any]) -> Table:
    if len(rows) > MOST_RESULT_ROWS:
        raise TrialError(f"more than {MOST_RESULT_ROWS:,} result rows of a handful of rows")
    values = tuple(list(column) for column in zip(*rows, strict=True)) if rows else tuple([] for _ in columns)
    return Table(columns, values, len(rows))


def _quoted(table: TableInfo) -> str:
    parts = [table.schema, table.name] if table.schema else [table.name]
    return ".".join(f'"{part}"' for part in parts)


def literal(value: Any) -> str:
    """Return a value as DuckDB reads it in an INSERT; dates and nested values as text that is cast there."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return repr(value) if value == value and abs(value) != float("inf") else f"'{value}'"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'"
    return "'" + str(value).replace("'", "''") + "'"
