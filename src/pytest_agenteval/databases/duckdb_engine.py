"""DuckDB, natively: a file or memory opened here, locked and read-only; or the user's connection."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from pytest_agenteval.databases.infinite_dates import arrow_reader, maybe_infinite, with_infinities
from pytest_agenteval.databases.limits import (
    MAX_BYTES,
    failed,
    rows_within,
    time_limit,
    too_large,
    too_many,
    too_slow,
    within,
)
from pytest_agenteval.databases.select_only import require_one_select_duckdb
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.table import Column, Table, arrow_values


def _memory() -> int:
    """Return how many MB a query may take: half of what the machine has, at most 4 GB."""
    return int(min(4096, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1024**2 / 2))


LOCKED: dict[str, Any] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
    "python_enable_replacements": "false",
    "memory_limit": f"{_memory()}MB",
    "max_temp_directory_size": f"{2 * _memory()}MB",
}
"""No files, no network, no extensions, no Python variables as tables; and no way to change that."""

_NO_FILES = (
    "; references read no files, views over files included: load them into tables, or let the fixture "
    "agenteval_databases give a connection that may"
)

_SMALL = 2_000
"""Rows up to which Python values are fetched; above, Arrow (about 10 x faster)."""

_ARROW_TYPES = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
    | {"FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}
)
"""Types whose Arrow form gives the same Python values as ``fetchall`` (and DECIMAL)."""

_SCHEMA = """
SELECT table_schema, table_name, column_name FROM information_schema.columns
WHERE table_catalog = current_database() AND table_schema NOT IN ('information_schema', 'pg_catalog')
ORDER BY table_schema, table_name, ordinal_position
"""


class _Duck:
    """One cursor per query, so that threads may ask at once."""

    dialect = "duckdb"

    def __init__(self, where: str) -> None:
        self._where = where
        self._running: set[Any] = set()

    def query(self, sql: str, timeout: float, max_rows: int) -> Table:
        """Run one SELECT. Raises ``DatabaseError``."""
        require_one_select_duckdb(sql, self._where)
        return within(timeout, self._where, lambda: self._run(sql, timeout, max_rows), self._leave)

    def _leave(self) -> None:
        """Forget a connection whose query does not end."""

    def schema(self, timeout: float) -> dict[str, tuple[str, ...]]:
        """Return column names by ``schema.table``."""
        return grouped(self._run(_SCHEMA, timeout, 10_000_000))

    def interrupt(self) -> None:
        """End what is running, from any thread."""
        for cursor in list(self._running):
            cursor.interrupt()

    def _run(self, sql: str, timeout: float, max_rows: int) -> Table:
        cursor = self._cursor()
        self._running.add(cursor)
        try:
            return run(cursor, sql, self._where, timeout, max_rows)
        finally:
            self._running.discard(cursor)
            cursor.close()

    def _cursor(self) -> Any:
        raise NotImplementedError


class DuckDBFile(_Duck):
    """A DuckDB file opened read-only and locked, or (``path`` None) an empty one in memory.

    ``keep``: stay open between queries (a snapshot); a user's own file is closed after each.
    """

    def __init__(self, path: Path | None, where: str, *, keep: bool) -> None:
        super().__init__(where)
        self._path = path
        self._keep = keep
        self._lock = threading.Lock()
        self._connection: Any = None

    def _run(self, sql: str, timeout: float, max_rows: int) -> Table:
        try:
            return super()._run(sql, timeout, max_rows)
        finally:
            if not self._keep:
                self.close()

    def _cursor(self) -> Any:
        with self._lock:
            if self._connection is None:
                self._connection = self._open()
            return self._connection.cursor()

    def _open(self) -> Any:
        import duckdb

        if self._path is None:
            return duckdb.connect(":memory:", config=LOCKED)
        try:
            return duckdb.connect(str(self._path), read_only=True, config=LOCKED)
        except duckdb.ConnectionException as error:
            raise DatabaseError(
                f"{self._where}: already open in this process with another configuration, and too large for "
                "a snapshot; close that connection or raise agenteval_snapshot_limit (bytes)"
            ) from error
        except duckdb.Error as error:
            raise failed(self._where, error) from error

    def _leave(self) -> None:
        self._connection = None  # closing it would wait for the query; the next one opens another

    def close(self) -> None:
        """Close the connection; the next query opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class DuckDBConnection(_Duck):
    """A DuckDB connection of the user: read-only transactions, settings as they are, never closed."""

    def __init__(self, connection: Any, where: str) -> None:
        super().__init__(where)
        self._connection = connection

    def _cursor(self) -> Any:
        import duckdb

        try:
            cursor = self._connection.cursor()
            cursor.execute("BEGIN TRANSACTION READ ONLY")
        except duckdb.Error as error:
            raise failed(self._where, error) from error
        return cursor

    def close(self) -> None:
        """Do nothing: the connection belongs to the caller."""


def run(cursor: Any, sql: str, where: str, timeout: float, max_rows: int) -> Table:
    """Run ``sql`` on ``cursor`` within the limits. Raises ``DatabaseError``."""
    import duckdb

    with time_limit(timeout, cursor.interrupt) as watch:
        try:
            cursor.execute(sql)
            table = fetch(cursor, where, max_rows)
            doubtful = maybe_infinite(table)
            table = with_infinities(cursor, sql, table, doubtful) if doubtful else table
            if watch.fired:
                raise too_slow(where, timeout)
            return table
        except duckdb.Error as error:
            if watch.fired:
                raise too_slow(where, timeout) from error
            hint = _NO_FILES if "disabled by configuration" in str(error) else ""
            raise DatabaseError(f"{failed(where, error)}{hint}") from error


def fetch(cursor: Any, where: str, max_rows: int) -> Table:
    """Return all rows of an executed cursor: Python values for a small result, Arrow above."""
    columns = tuple(Column(entry[0], _sql_type(entry[1])) for entry in cursor.description)
    small = min(_SMALL, max_rows)
    rows = cursor.fetchmany(small + 1)
    if len(rows) > small:
        if len(rows) > max_rows:
            raise too_many(where, max_rows)
        if _arrow_goes_on() and all(_in_arrow(column.type) for column in columns):
            return _with_arrow(cursor, columns, rows, where, max_rows)
        rows += rows_within(cursor.fetchmany, where, max_rows, len(rows))
    values = tuple(list(column) for column in zip(*rows, strict=True)) if rows else tuple([] for _ in columns)
    return Table(columns, values, len(rows))


def _sql_type(kind: Any) -> str | None:
    text = str(kind)
    return None if text in ('"NULL"', "NULL") else text


def _arrow_goes_on() -> bool:
    """Return whether Arrow begins where ``fetchmany`` ended: before DuckDB 2.0 the rest of the chunk was
    lost.
    """
    import duckdb

    return int(duckdb.__version__.partition(".")[0]) >= 2


def _in_arrow(kind: str | None) -> bool:
    return kind in _ARROW_TYPES or (kind is not None and kind.startswith("DECIMAL"))


def _with_arrow(
    cursor: Any, columns: tuple[Column, ...], first: list[Any], where: str, max_rows: int
) -> Table:
    """Return the rows fetched so far and all others, as Arrow arrays."""
    import pyarrow

    reader = arrow_reader(cursor)
    batches, count, size = [], len(first), 0
    for batch in reader:
        batches.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if size > MAX_BYTES:
            raise too_large(where)
        if count > max_rows:
            raise too_many(where, max_rows)
    values = []
    for index, start in enumerate(zip(*first, strict=True)):
        kind = reader.schema.types[index]
        rest = [batch.column(index) for batch in batches]
        values.append(_column(pyarrow, kind, list(start), rest))
    return Table(columns, tuple(values), count)


def _column(pyarrow: Any, kind: Any, start: list[Any], rest: list[Any]) -> Any:
    """Return one Arrow array; a list where DuckDB has dates that Python has no value for."""
    from pyarrow import compute

    later = pyarrow.chunked_array(rest, type=kind)
    try:
        if pyarrow.types.is_temporal(kind) and len(later):
            extremes = compute.min_max(later)
            (extremes["min"].as_py(), extremes["max"].as_py())
        return pyarrow.chunked_array([pyarrow.array(start, type=kind), *rest], type=kind)
    except (OverflowError, ValueError, pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return start + arrow_values(later)


def grouped(table: Table) -> dict[str, tuple[str, ...]]:
    """Return rows of schema, table, column as columns by ``schema.table``."""
    found: dict[str, list[str]] = {}
    for schema, name, column in table.rows():
        found.setdefault(f"{schema}.{name}", []).append(column)
    return {name: tuple(columns) for name, columns in found.items()}
